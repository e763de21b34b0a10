import type { Locator, Page } from 'playwright-core';

/** Waits until a page says what it is: the one before it may still be there. */
export const isHeaded = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

/** The errors that a page shows. */
export const problem = (page: Page) => page.getByRole('alert').innerText();

/** The text at a place of a page, such as a row or a notice, in one line. */
export const textOf = async (place: Locator) => (await place.innerText()).replaceAll(/\s+/g, ' ').trim();
