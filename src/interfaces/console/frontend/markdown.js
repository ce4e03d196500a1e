// Markdown of models as HTML: no raw HTML, no image of another site, only links that people would expect.
import MarkdownIt from "markdown-it";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = { bash, css, diff, go, java, javascript, json, python, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

function highlight(code, name) {
  if (!hljs.getLanguage(name)) return ""; // it is escaped as it is
  return hljs.highlight(code, { language: name, ignoreIllegals: true }).value;
}

const markdown = new MarkdownIt({ html: false, linkify: true, highlight });
const { escapeHtml } = markdown.utils;
markdown.validateLink = (url) => /^(https?:|mailto:)/i.test(url.trim());

markdown.renderer.rules.link_open = (tokens, at, options, env, self) => {
  tokens[at].attrSet("target", "_blank");
  tokens[at].attrSet("rel", "noopener noreferrer");
  return self.renderToken(tokens, at, options);
};
// Not fetched: its server would learn who reads.
markdown.renderer.rules.image = (tokens, at) => {
  const url = escapeHtml(tokens[at].attrGet("src") ?? "");
  return `<a href="${url}" target="_blank" rel="noopener noreferrer">${escapeHtml(tokens[at].content || "image")}</a>`;
};
// The policy of pages allows no style attributes.
for (const cell of ["th_open", "td_open"]) {
  markdown.renderer.rules[cell] = (tokens, at, options, env, self) => {
    const align = tokens[at].attrGet("style")?.match(/(right|center)/)?.[1];
    tokens[at].attrs = align ? [["class", align]] : null;
    return self.renderToken(tokens, at, options);
  };
}

window.markdown = { render: (text) => markdown.render(text) };
