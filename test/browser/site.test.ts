import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';
import type { Visit } from '../support/browser/visit.ts';
import { finished, ROOT } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'svc-api-site-'));

/** Serves the site until the test ends. */
async function serveSite(visit: Visit): Promise<string> {
  const app = new Hono().use(serveStatic({ root: folder }));
  const server = createAdaptorServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  visit.started(origin, async () => {
    server.close();
    await once(server, 'close');
  });
  return origin;
}

/** The site's pages, by path. */
function pages(): Map<string, string> {
  const paths = globSync('**/*.html', { cwd: folder });
  return new Map(paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')]));
}

describe('the site of the documentation', () => {
  before('build the site', async () => {
    const vitepress = join(ROOT, 'node_modules/vitepress/bin/vitepress.js');
    const { code, stderr } = await finished(
      spawn(process.execPath, [vitepress, 'build', 'site', '--outDir', folder], { cwd: ROOT }),
    );
    assert.equal(code, 0, stderr);
  });

  after(() => rmSync(folder, { recursive: true }));

  it('has a page for each document, and its text', () => {
    const documents = globSync(['docs/**/*.md', 'examples/**/README.md'], { cwd: ROOT, exclude: ['**/node_modules'] });
    assert.ok(documents.length > 40);
    for (const document of documents) {
      const path = document.replace('README', 'index');
      assert.equal(readFileSync(join(folder, path), 'utf8'), readFileSync(join(ROOT, document), 'utf8'));
      assert.ok(pages().has(path.replace(/md$/, 'html')), document);
    }
  });

  it('lists its pages for agents', () => {
    const links = Array.from(
      readFileSync(join(folder, 'llms.txt'), 'utf8').matchAll(/\]\(\/([^)]+)\)/g),
      ([, to]) => to!,
    );
    assert.ok(links.length > 30);
    for (const link of links) assert.ok(readFileSync(join(folder, link), 'utf8').length > 0, link);
  });

  it('has no dead link', () => {
    const all = pages();
    const files = new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' }));
    const dead = [...all].flatMap(([from, html]) =>
      Array.from(html.matchAll(/ (?:href|src)="([^"]*)"/g), ([, link]) => link!)
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => {
          const [path, anchor] = decodeURI(link).split('#');
          const to = path ? (path.startsWith('/') ? path.slice(1) : join(dirname(from), path)) : from;
          const file = to === '' || to.endsWith('/') ? `${to}index.html` : to;
          if (!files.has(file)) return true;
          return Boolean(anchor) && file.endsWith('.html') && !all.get(file)!.includes(` id="${anchor}"`);
        })
        .map((link) => `${from}: ${link}`),
    );
    assert.deepEqual(dead, []);
  });

  for (const path of [
    '/',
    '/docs/',
    '/docs/tutorials/guard.html',
    '/docs/explanation/how-a-check-works.html',
    '/docs/guard.html',
    '/docs/consent.html',
    '/docs/how-to/caddy.html',
    '/docs/library/checking.html',
    '/docs/plugins/fields.html',
  ])
    it(
      `is accessible and fits a narrow screen at ${path}`,
      inBrowser(async (visit) => expectAccessible(await visit.open((await serveSite(visit)) + path))),
    );

  it(
    'finds pages by their words',
    inBrowser(async (visit) => {
      const page = await visit.open(await serveSite(visit));
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('searchbox').fill('rotate');
      await page.getByRole('option').first().waitFor();
      assert.match((await page.getByRole('option').allTextContents()).join('\n'), /rotate/i);
    }),
  );

  it(
    'draws diagrams',
    inBrowser(async (visit) => {
      const site = await serveSite(visit);
      for (const path of ['guard', 'proxies']) {
        const page = await visit.open(`${site}/docs/${path}.html`);
        assert.equal(await page.locator('.diagram svg').count(), 1, path);
      }
    }),
  );
});
