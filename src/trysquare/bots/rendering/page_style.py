"""The style of the story map's page: headings that stay in sight, and a story's details that open beside the map."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light; --ink: #1d2b33; --muted: #52646e; --dark: #24404f; --line: #d5dfe3; --card: 11.5rem; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.45 "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: var(--ink);
  background: #fff; height: 100vh; display: flex; flex-direction: column; }
header { display: flex; flex-wrap: wrap; gap: .5rem 3rem; justify-content: space-between; padding: .9rem 1.4rem .8rem; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.2; }
.goal { margin: .15rem 0 0; color: var(--muted); max-width: 60rem; }
.sum { margin: .2rem 0 0; color: var(--muted); font-size: .8rem; font-weight: 400; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .2rem 0 0; padding: 0;
  font-size: .82rem; align-items: center; }
.swatch { display: inline-block; width: .85rem; height: .85rem; border: 1px solid var(--edge); border-radius: 3px;
  background: var(--fill); vertical-align: -.12em; margin-right: .35rem; }
.user { --fill: #fff1c2; --edge: #d29c00; } .system { --fill: #d6e8fc; --edge: #2f7fd0; }
.technical { --fill: #e6e0f5; --edge: #7a5cc0; }
.map { flex: 1; min-height: 0; overflow: auto; border-top: 1px solid var(--line); }
.map > table { border-collapse: separate; border-spacing: 0; }
.map > table > thead { position: sticky; top: 0; z-index: 2; background: #fff; box-shadow: 0 4px 6px -5px #24404f66; }
thead th, thead td { padding: .3rem .25rem 0; text-align: left; height: 1px; }
thead tr:last-child > * { padding-bottom: .5rem; }
thead th > div { height: 100%; padding: .4rem .6rem; border-radius: 6px; font-size: .92rem; line-height: 1.3; }
thead th small { display: block; font-weight: 400; font-size: .76rem; opacity: .85; }
.epic > div { background: var(--dark); color: #fff; } .step > div { background: #dbe7ec; }
.corner, .increment { position: sticky; left: 0; z-index: 1; width: 13rem; min-width: 13rem; max-width: 13rem; }
.corner { background: #fff; z-index: 3; }
.increment { text-align: left; vertical-align: top; padding: .7rem .8rem; font-size: .95rem; line-height: 1.3; }
.increment p { margin: .25rem 0 0; color: var(--muted); font-size: .8rem; font-weight: 400; }
.later .increment { color: var(--muted); }
.planned > *, .later > * { border-bottom: .5rem solid #fff; background: #f2f6f7; }
.planned:nth-child(even) > *, .later:nth-child(even) > * { background: #e8eff1; }
.cell { vertical-align: top; padding: .45rem .25rem .1rem; }
.cell, .step, .epic { min-width: var(--card); }
.number { display: inline-block; min-width: 1.35rem; height: 1.35rem; line-height: 1.35rem; border-radius: 1rem;
  background: var(--dark); color: #fff; text-align: center; font-size: .75rem; margin-right: .45rem; }
.card { display: block; width: calc(var(--card) - .5rem); margin: 0 0 .45rem; padding: .4rem .55rem .35rem;
  color: inherit; text-decoration: none; background: var(--fill); border: 1px solid var(--edge); border-left-width: 5px;
  border-radius: 5px; font-size: .86rem; line-height: 1.3; overflow-wrap: anywhere; }
.card:hover, .card:focus { box-shadow: 0 2px 8px #24404f55; outline: 2px solid var(--edge); }
.card small { display: flex; justify-content: space-between; align-items: center; gap: .5rem; margin-top: .25rem;
  color: var(--muted); font-size: .74rem; }
.pips { display: inline-flex; gap: 3px; margin-left: auto; }
.pips i { width: 8px; height: 8px; border-radius: 50%; border: 1px solid var(--edge, var(--muted)); }
.pips i.on { background: var(--edge, var(--muted)); } .pips i.off { background: #fff; }
body:has(#small:checked) { --card: 7.6rem; }
body:has(#small:checked) .card { font-size: .72rem; padding: .2rem .35rem; }
body:has(#small:checked) .card small, body:has(#small:checked) thead small { display: none; }
.nothing { padding: 2rem 1.4rem; color: var(--muted); }
article { display: none; }
article:target { display: block; position: fixed; right: 0; top: 0; bottom: 0; z-index: 5; width: min(34rem, 94vw);
  overflow: auto; outline: none; background: #fff; border-left: 6px solid var(--edge); padding: 1.1rem 1.5rem 2rem;
  box-shadow: -6px 0 24px #24404f44; }
article h2 { margin: 0 2rem .1rem 0; font-size: 1.25rem; line-height: 1.25; }
article h3 { margin: 1.1rem 0 .2rem; font-size: .95rem; } article h3 small { font-weight: 400; color: var(--muted); }
article ul { margin: .2rem 0; padding-left: 1.1rem; } article li { margin: .25rem 0; }
.where { margin: .3rem 0 0; color: var(--muted); font-size: .84rem; }
.close { position: absolute; right: 1rem; top: .7rem; font-size: 1.6rem; line-height: 1; text-decoration: none;
  color: var(--muted); padding: 0 .3rem; }
.word { font-weight: 600; color: var(--dark); }
.examples { border-collapse: collapse; margin: .4rem 0; font-size: .85rem; }
.examples th, .examples td { border: 1px solid var(--line); padding: .15rem .5rem; text-align: left; }
@media print {
  body { display: block; height: auto; } .map { overflow: visible; }
  .map > table > thead, .corner, .increment { position: static; }
  .legend label, .close { display: none; }
  article, article:target { display: block; position: static; width: auto; box-shadow: none; margin: 1rem 0;
    break-inside: avoid; }
}
"""
