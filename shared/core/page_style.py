"""The look of the pages on which documents are read. Pure; it stands in the page itself, named by its hash.

No script, no font and no picture from elsewhere: the policy sent with a page allows this style sheet and
pictures of our own origin, and nothing else.
"""

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; --ground: #f6f7f9; --paper: #ffffff; --ink: #1b1f24; --soft: #57606a;
  --line: #d0d7de; --link: #0b57d0; --mark: #ffe58a; --mark-ink: #1b1f24; --box: #d9a400; --badge: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --paper: #1d2126; --ink: #e6e9ec;
  --soft: #a0a8b1; --line: #3a4149; --link: #8ab4f8; --mark: #7a5f00; --mark-ink: #fff6d6; --box: #f2c230;
  --badge: #6fdd8b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.6;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
a { color: var(--link); }
a:focus-visible, main:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link);
  outline-offset: 2px; }
.skip { position: absolute; left: -99rem; padding: .5rem 1rem; background: var(--paper); }
.skip:focus { left: 1rem; top: 1rem; z-index: 2; }
header { background: var(--paper); border-bottom: 1px solid var(--line); padding: 1rem 1.5rem; }
header > * { max-width: 84rem; margin-inline: auto; }
h1 { font-size: 1.35rem; line-height: 1.3; margin-block: 0; overflow-wrap: anywhere; }
.about { margin-block: .25rem .5rem; color: var(--soft); overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
nav .off { color: var(--soft); }
main { max-width: 87rem; margin: 0 auto; padding: 1.25rem 1.5rem 3rem; }
main.two { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 1.5rem;
  align-items: start; }
main.one { max-width: 55rem; }
@media (max-width: 62rem) { main.two { grid-template-columns: minmax(0, 1fr); } }
.cited { grid-column: 1 / -1; background: var(--paper); border: 1px solid var(--line);
  border-left: .35rem solid var(--box); border-radius: .4rem; padding: .6rem 1rem; margin-bottom: .25rem; }
main.one .cited { margin-bottom: 1rem; }
.cited p { margin: .2rem 0; }
.cited blockquote { margin: .2rem 0; white-space: pre-line; overflow-wrap: anywhere; }
.badge { color: var(--badge); font-weight: 600; }
.sheet { position: relative; margin: 0; background: #ffffff; border: 1px solid var(--line);
  border-radius: .4rem; overflow: hidden; box-shadow: 0 1px 4px rgb(0 0 0 / 12%); }
.sheet img { display: block; width: 100%; height: auto; color: #57606a; }
.sheet svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.sheet rect { fill: #ffd43b; fill-opacity: .38; stroke: #b58100; stroke-width: 1.5px;
  vector-effect: non-scaling-stroke; mix-blend-mode: multiply; }
.sheet rect.anchor { fill: none; stroke: none; }
.text { background: var(--paper); border: 1px solid var(--line); border-radius: .4rem;
  padding: .75rem 1.25rem 1.25rem; overflow-wrap: anywhere; }
.text h2, .text h3, .text h4, .text h5, .text h6 { line-height: 1.3; margin: 1.1em 0 .4em; }
.text h2 { font-size: 1.3rem; } .text h3 { font-size: 1.15rem; }
.text h4, .text h5, .text h6 { font-size: 1rem; }
.text p { margin: .6em 0; white-space: pre-line; }
.text ul { margin: .6em 0; padding-inline-start: 1.4rem; }
.text li { white-space: pre-line; }
.text pre { background: var(--ground); border-radius: .3rem; padding: .75rem; overflow-x: auto; }
.scroll { overflow-x: auto; margin: .8em 0; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: start; vertical-align: top;
  overflow-wrap: normal; }
th { background: var(--ground); }
figure.picture { margin: 1em 0; }
figure.picture img { max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: .3rem; }
figcaption { color: var(--soft); font-size: .92rem; white-space: pre-line; }
mark { background: var(--mark); color: var(--mark-ink); border-radius: .15rem; padding: 0 .08em;
  scroll-margin-top: 30vh; }
.page { color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line); margin: 1.5rem 0 .5rem;
  padding-top: .3rem; }
.page:first-child { border-top: 0; margin-top: 0; }
.moment { font-variant-numeric: tabular-nums; color: var(--soft); margin-inline-end: .6em; }
p:target, li:target { background: var(--mark); color: var(--mark-ink); }
.none { color: var(--soft); }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
@media print { nav, .skip { display: none; } body { background: none; } }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""What a browser may load for such a page (Content Security Policy, level 3)."""
