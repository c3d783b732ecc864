// Bundles the page into dist/: Brotli and gzip beside each file, and the shell that names them with their version.
// Names stay the same from build to build, because the platform's sign-in lists each of them as public.
// `node build.mjs tests OUT` bundles the unit tests instead, for `node --test`.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Options of the lexer that the page never changes. As constants they let the minifier drop unused code. */
const OPTIONS = { pedantic: "!1", gfm: "!0", breaks: "!1", silent: "!1", extensions: "(void 0)", hooks: "(void 0)" };

/** The lexer's rules for options that are off: of blocks, of spans, and the expressions that only these need. */
const UNUSED = [/pedantic:(\w+)\},/, /breaks:(\w+),pedantic:(\w+)\}/, /emStrongLDelim:(\w+),emStrongRDelimAst:(\w+),emStrongRDelimUnd:(\w+),link:/];

/** Replaces the rules that the lexer never uses with `false`, so that the minifier drops them. */
function withoutUnused(lexer) {
  const names = UNUSED.flatMap((pattern) => pattern.exec(lexer)?.slice(1) ?? []);
  if (names.length !== 6) throw new Error("marked has other rules: adapt UNUSED");
  return names.reduce((text, name) => text.replace(new RegExp(`,${name}=(?=\\{\\.{3}|\\w+\\()`), `,${name}=!1&&`), lexer);
}

/** Turns the lexer's table of expressions into variables, which the minifier can rename or drop. */
function withVariables(lexer) {
  const [, name, table] = /\b(\w+)=\{(codeRemoveIndent:.*?)\},\w+=\/\^\(\?:/s.exec(lexer) ?? [];
  if (!table) throw new Error("marked has another table: adapt withVariables");
  const variables = table.replace(/(^|,)(\w+):(?=\/|\w+=>|\w+\()/g, `$1${name}_$2=`);
  return lexer
    .replace(`${name}={${table}}`, () => variables)
    .replace(`other:${name},`, "")
    .replace(new RegExp(`(?:\\b[\\w.]+\\.other|\\b${name})\\.(?=\\w)`, "g"), `${name}_`);
}

/** Leaves out marked's renderers and parser, a fifth of it: the page renders tokens itself. */
const lexerOnly = {
  name: "lexer-only",
  setup: ({ onLoad }) =>
    onLoad({ filter: /marked\.esm\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const end = text.search(/var \w+=class\{options;parser;/); // the first class after the lexer
      const lexer = /(\w+) as Lexer/.exec(text)?.[1];
      if (end < 0 || !lexer) throw new Error("marked has another layout: adapt lexerOnly");
      const used = withVariables(withoutUnused(text.slice(0, end)));
      const code = Object.entries(OPTIONS).reduce((all, [name, value]) => all.replaceAll(`this.options.${name}`, value), used);
      return { contents: `${code}export{${lexer} as Lexer};` };
    }),
};

const common = { bundle: true, plugins: [lexerOnly], jsx: "automatic", jsxImportSource: "preact", target: "es2022", write: false };

async function page() {
  const { outputFiles } = await build({
    ...common,
    entryPoints: { page: "src/main.tsx", style: "src/style/page.css" },
    format: "esm",
    splitting: true,
    chunkNames: "[name]",
    minify: true,
    legalComments: "none",
    outdir: "out",
    loader: { ".svg": "text" },
  });
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist/assets", { recursive: true });
  const files = outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]);
  files.push(["icon.svg", readFileSync("src/icon.svg")]);
  const hash = createHash("sha256");
  for (const [name, content] of files) hash.update(name).update(content);
  const version = hash.digest("hex").slice(0, 10);
  const withVersion = (text, folder) =>
    files.reduce((all, [name]) => all.replaceAll(`"${folder}${name}"`, `"${folder}${name}?v=${version}"`), text);
  for (const [name, content] of files) {
    const served = extname(name) === ".js" ? Buffer.from(withVersion(content.toString(), "./")) : content;
    writeFileSync(join("dist/assets", name), served);
    writeFileSync(join("dist/assets", `${name}.gz`), gzipSync(served, { level: 9 }));
    const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
    writeFileSync(join("dist/assets", `${name}.br`), brotliCompressSync(served, options));
  }
  writeFileSync("dist/index.html", withVersion(readFileSync("src/index.html", "utf8"), "/web/assets/"));
  writeFileSync("dist/version.txt", version);
}

async function tests(folder) {
  const entryPoints = readdirSync("tests").filter((name) => name.endsWith(".test.ts")).map((name) => `tests/${name}`);
  await build({ ...common, entryPoints, platform: "node", format: "esm", outdir: folder, outExtension: { ".js": ".mjs" }, write: true });
}

await (process.argv[2] === "tests" ? tests(process.argv[3]) : page());
