// Bundles the page into dist/: hashed names, Brotli and gzip beside each file, and the shell that names them.
// `node build.mjs tests OUT` bundles the unit tests instead, for `node --test`.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const common = { bundle: true, jsx: "automatic", jsxImportSource: "preact", target: "es2022", write: false };

async function page() {
  const { outputFiles } = await build({
    ...common,
    entryPoints: { page: "src/main.tsx", style: "src/style/page.css" },
    format: "esm",
    splitting: true,
    chunkNames: "[name]-[hash]",
    minify: true,
    legalComments: "none",
    outdir: "out",
    loader: { ".svg": "text" },
  });
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist/assets", { recursive: true });
  let shell = readFileSync("src/index.html", "utf8");
  const files = outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]);
  files.push(["icon.svg", readFileSync("src/icon.svg")]);
  for (const [name, content] of files) {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 10);
    // A language already has esbuild's hash, by which the page imports it.
    const hashed = name.includes("-") ? name : `${basename(name, extname(name))}-${hash}${extname(name)}`;
    shell = shell.replaceAll(`/web/assets/${name}`, `/web/assets/${hashed}`);
    writeFileSync(join("dist/assets", hashed), content);
    writeFileSync(join("dist/assets", `${hashed}.gz`), gzipSync(content, { level: 9 }));
    const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
    writeFileSync(join("dist/assets", `${hashed}.br`), brotliCompressSync(content, options));
  }
  writeFileSync("dist/index.html", shell);
}

async function tests(folder) {
  const entryPoints = readdirSync("tests").filter((name) => name.endsWith(".test.ts")).map((name) => `tests/${name}`);
  await build({ ...common, entryPoints, platform: "node", format: "esm", outdir: folder, outExtension: { ".js": ".mjs" }, write: true });
}

await (process.argv[2] === "tests" ? tests(process.argv[3]) : page());
