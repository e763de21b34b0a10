import { inBrowser } from '../support/browser.ts';
import { expectAccessible } from '../support/browser/accessible.ts';

describe('the page at /, in a browser', () => {
  it(
    'is accessible',
    inBrowser(async (visit) => {
      const { url } = await visit.serve();
      await expectAccessible(await visit.open(url));
    }),
  );
});
