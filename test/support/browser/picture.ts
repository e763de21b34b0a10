import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { ROOT } from '../process.ts';

const IMAGES = join(ROOT, 'docs/images');

/**
 * With `npm run screenshots`, saves the page as `NAME-light.png` and `NAME-dark.png` for the documentation. The page
 * must look the same each time: use `steadyRandomness` and the stopped clock of `visit.serve`.
 * @param height of the picture, in CSS pixels
 */
export async function takePicture(page: Page, name: string, height = 800): Promise<void> {
  if (!process.env['TAKE_PICTURES']) return;
  const before = page.viewportSize()!;
  await page.setViewportSize({ ...before, height });
  // The port differs in each run.
  await page.evaluate("for (const host of document.querySelectorAll('.host')) host.textContent = 'keys.example.org'");
  mkdirSync(IMAGES, { recursive: true });
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(IMAGES, `${name}-${colorScheme}.png`), animations: 'disabled' });
  }
  await page.setViewportSize(before);
}
