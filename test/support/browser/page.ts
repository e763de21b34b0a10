import type { Locator, Page } from 'playwright-core';

/** Waits until a page says what it is, for the one before it may still be there, and has all that belongs to it. */
export async function isHeaded(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  await page.waitForLoadState();
}

/** What a page says that is wrong. */
export const problem = (page: Page) => page.getByRole('alert').innerText();

/** What is at a place of a page, such as a row or a notice, in one line. */
export const textOf = async (place: Locator) => (await place.innerText()).replaceAll(/\s+/g, ' ').trim();
