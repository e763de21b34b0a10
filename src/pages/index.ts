/** The pages that people see, as HTML. */
export { codePage, consentPage } from './consent-page.ts';
export { messagePage, type Page } from './document.ts';
