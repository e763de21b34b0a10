import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { AxeResults } from 'axe-core';
import type { CDPSession, Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** All rules for WCAG 2.2 A and AA, plus axe's best practices. */
const OPTIONS = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa', 'best-practice'],
  rules: { 'target-size': { enabled: true } },
  resultTypes: ['violations'],
};
/** The rules that a dark color scheme can break. */
const COLOURS = { ...OPTIONS, runOnly: ['color-contrast', 'link-in-text-block'] };
const WIDE = 1280;
const NARROW = 360;
const HEIGHT = 800;
const MAX_MS = 120_000;

/** The page's width if it scrolls sideways, and the innermost elements that cross its right edge. */
const TOO_WIDE = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const isWide = (element) => {
    const { left, right } = element.getBoundingClientRect();
    return Math.max(right, left + element.scrollWidth) > clientWidth;
  };
  const wide = [...document.querySelectorAll('body *')].filter(isWide);
  const innermost = wide.filter((one) => !wide.some((other) => other !== one && one.contains(other)));
  return ['the page is ' + scrollWidth + ' px wide', ...innermost.map((element) => element.outerHTML.slice(0, 200))];
})()`;

/**
 * Fails if axe finds a violation in light or dark, wide or narrow, or if the page scrolls sideways on a narrow screen.
 * Axe runs in an isolated world, so the page's Content-Security-Policy stays in force. The page is left as it was.
 */
export async function expectAccessible(page: Page): Promise<void> {
  const found = new Map<string, string[]>();
  const [before, isDark] = [page.viewportSize()!, await page.evaluate<boolean>(DARK)];
  const axe = await Axe.beside(page);
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [WIDE, NARROW]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: HEIGHT });
      for (const finding of [
        ...(await axe.findings(colorScheme === 'light' ? OPTIONS : COLOURS)),
        ...(width === NARROW ? await tooWide(page) : []),
      ])
        found.set(finding, [...(found.get(finding) ?? []), `${colorScheme} at ${width} px`]);
    }
  await axe.end();
  await page.emulateMedia({ colorScheme: isDark ? 'dark' : 'light' });
  await page.setViewportSize(before);
  const lines = [...found].map(([finding, looks]) => `${finding}\n    (${looks.join(', ')})`);
  assert.ok(found.size === 0, `${page.url()} is not accessible:\n  ${lines.join('\n  ')}`);
}

const DARK = "matchMedia('(prefers-color-scheme: dark)').matches";

async function tooWide(page: Page): Promise<string[]> {
  const [width, ...elements] = await page.evaluate<string[]>(TOO_WIDE);
  return width === undefined ? [] : [`it scrolls sideways: ${[width, ...elements].join('\n    ')}`];
}

/** Axe, in an isolated world of a page. */
class Axe {
  readonly #session: CDPSession;
  readonly #contextId: number;

  private constructor(session: CDPSession, contextId: number) {
    this.#session = session;
    this.#contextId = contextId;
  }

  static async beside(page: Page): Promise<Axe> {
    const session = await page.context().newCDPSession(page);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
    const axe = new Axe(session, executionContextId);
    await axe.#evaluate(`${AXE};0`);
    return axe;
  }

  /** The violations on the page as it looks now, each with its element. */
  async findings(options: object): Promise<string[]> {
    const run = `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
    const ended = delay(MAX_MS, undefined, { ref: false }).then(() =>
      assert.fail('axe does not end: it needs JavaScript'),
    );
    const evaluated = this.#evaluate(run) as Promise<AxeResults['violations']>;
    const violations = await Promise.race([evaluated, ended]);
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, failureSummary }) => {
        const summary = failureSummary?.split('\n').slice(1).join('\n    ') ?? '';
        return `${id}: ${help}: ${target.join(' ')}\n    ${summary.trim()}`;
      }),
    );
  }

  end(): Promise<void> {
    return this.#session.detach();
  }

  async #evaluate(expression: string): Promise<unknown> {
    const options = { contextId: this.#contextId, expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#session.send('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
