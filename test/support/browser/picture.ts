import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { ROOT } from '../process.ts';

const IMAGES = join(ROOT, 'docs/images');

/**
 * Takes the pictures `NAME-light.png` and `NAME-dark.png` for the documentation, of what a test is looking at, if it is
 * run by `npm run screenshots`. What the page shows is to be the same each time: `steadyRandomness` and the
 * stopped clock of `visit.serve` see to that.
 * @param height of what is seen, in CSS pixels
 */
export async function takePicture(page: Page, name: string, height = 800): Promise<void> {
  if (!process.env['TAKE_PICTURES']) return;
  const before = page.viewportSize()!;
  await page.setViewportSize({ ...before, height });
  // Each run has another port.
  await page.evaluate("for (const host of document.querySelectorAll('.host')) host.textContent = 'keys.example.org'");
  mkdirSync(IMAGES, { recursive: true });
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(IMAGES, `${name}-${colorScheme}.png`), animations: 'disabled' });
  }
  await page.setViewportSize(before);
}
