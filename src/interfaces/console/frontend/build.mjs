// Bundles the libraries into static/NAME.min.js, with their versions in the first line and their licences beside it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

for (const bundle of ["markdown", "yaml"]) {
  const out = `${process.argv[2]}/${bundle}.min.js`;
  const { metafile, outputFiles } = await build({
    entryPoints: [`${bundle}.js`], bundle: true, minify: true, format: "iife", target: "es2022", legalComments: "none", metafile: true, write: false, outfile: out,
  });
  const inputs = Object.keys(metafile.inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]);
  const packages = [...new Set(inputs)].filter(Boolean).sort().map((name) => {
    const folder = `node_modules/${name}`;
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    return { name, version, text: readFileSync(`${folder}/${licence}`, "utf8").trim() };
  });
  const versions = packages.map(({ name, version }) => `${name}@${version}`).join(" ");
  writeFileSync(out, `/* ${versions} */\n${outputFiles[0].text}`);
  writeFileSync(`${process.argv[2]}/${bundle}.LICENSE`, packages.map(({ name, version, text }) => `${name} ${version}\n\n${text}\n`).join("\n---\n\n"));
}
