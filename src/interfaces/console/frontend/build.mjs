// Bundles the libraries into static/NAME.min.js and the icons into icons.svg and icons.css, with their versions in the first line and their licences beside them.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { sprite, states } from "./icons.mjs";

const out = process.argv[2];
const named = (names) => names.map((name) => {
  const folder = `node_modules/${name}`;
  const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return { name, version, text: readFileSync(`${folder}/${licence}`, "utf8").trim() };
});
const versionsOf = (packages) => packages.map(({ name, version }) => `${name}@${version}`).join(" ");
const keepLicences = (bundle, packages) => writeFileSync(`${out}/${bundle}.LICENSE`, packages.map(({ name, version, text }) => `${name} ${version}\n\n${text}\n`).join("\n---\n\n"));

for (const bundle of ["markdown", "yaml"]) {
  const outfile = `${out}/${bundle}.min.js`;
  const { metafile, outputFiles } = await build({
    entryPoints: [`${bundle}.js`], bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none", metafile: true, write: false, outfile,
  });
  const inputs = Object.keys(metafile.inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]);
  const packages = named([...new Set(inputs)].filter(Boolean).sort());
  writeFileSync(outfile, `/* ${versionsOf(packages)} */\n${outputFiles[0].text}`);
  keepLicences(bundle, packages);
}

const icons = named(["lucide-static"]);
const drawing = (name) => readFileSync(`node_modules/lucide-static/icons/${name}.svg`, "utf8").match(/<svg[^>]*>([^]*)<\/svg>/)[1].replace(/\s+/g, " ").replaceAll("> <", "><").replaceAll(" />", "/>").trim();
const STROKE = 'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';
const symbols = sprite.map((name) => `<symbol id="${name}" viewBox="0 0 24 24" ${STROKE}>${drawing(name)}</symbol>`);
writeFileSync(`${out}/icons.svg`, `<!-- ${versionsOf(icons)} -->\n<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("\n")}\n</svg>\n`);
const alone = (name) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" ${STROKE}>${drawing(name)}</svg>`;
const masks = states.map((name) => `  --icon-${name}: url("data:image/svg+xml,${encodeURIComponent(alone(name))}");`);
writeFileSync(`${out}/icons.css`, `/* ${versionsOf(icons)} */\n:root {\n${masks.join("\n")}\n}\n`);
keepLicences("icons", icons);
