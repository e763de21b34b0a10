import type { Locator, Page } from 'playwright-core';

/** Waits for the heading of a page, since the previous page can still be shown. */
export const isHeaded = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

/** The errors that a page shows. */
export const problem = (page: Page) => page.getByRole('alert').innerText();

/** The text of an element, such as a row or a notice, in one line. */
export const textOf = async (place: Locator) => (await place.innerText()).replaceAll(/\s+/g, ' ').trim();
