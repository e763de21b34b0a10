import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import GithubSlugger from 'github-slugger';
import { ROOT } from '../support/process.ts';

const DOCUMENTS = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
});

/** A document without its code blocks. */
const textOf = (document: string) => readFileSync(join(ROOT, document), 'utf8').replaceAll(/^ *(```+).*?^ *\1$/gms, '');

/** The link targets of `[text](target)` and of `[text]: target` on a separate line. */
function linksOf(document: string): string[] {
  const links = textOf(document)
    .replaceAll(/`[^`]*`/g, '')
    .matchAll(/\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: (\S+)/gm);
  return Array.from(links, ([, inline, reference]) => (inline ?? reference)!);
}

/** The anchors of the headings, as GitHub makes them. */
function anchorsOf(document: string): string[] {
  const slugger = new GithubSlugger();
  const headings = textOf(document).matchAll(/^#+ (.+)$/gm);
  return Array.from(headings, ([, heading]) => slugger.slug(heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')));
}

function isDead(link: string, document: string): boolean {
  const [path, anchor] = link.split('#');
  const target = path ? join(dirname(document), path) : document;
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && !anchorsOf(target).includes(anchor);
}

describe('the documentation', () => {
  it('has no dead links between its files', () => {
    const links = DOCUMENTS.flatMap((document) =>
      linksOf(document)
        .filter((link) => !/^[a-z]+:/.test(link))
        .map((link) => ({ document, link })),
    );
    assert.ok(links.length > 30);
    assert.deepEqual(
      links.filter(({ document, link }) => isDead(link, document)),
      [],
    );
  });

  it('names no files of this repository that are not there', () => {
    const PATH = /`((?:src|test|docs|scripts|examples|bench|schemas|bin|\.ci)\/[^`\s]+)`/g;
    const paths = DOCUMENTS.flatMap((document) =>
      Array.from(textOf(document).matchAll(PATH), ([, path]) => ({ document, path: path! })),
    );
    assert.ok(paths.length > 30);
    assert.deepEqual(
      paths.filter(({ path }) => globSync(path, { cwd: ROOT }).length === 0),
      [],
    );
  });
});
