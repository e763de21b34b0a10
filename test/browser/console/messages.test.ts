import { inBrowser } from '../../support/browser.ts';
import { expectAccessible } from '../../support/browser/accessible.ts';
import { signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded } from '../../support/browser/page.ts';

describe('what the console says where there is nothing to do, in a browser,', () => {
  it(
    'is accessible',
    inBrowser(async (visit) => {
      const { page, open, id } = await signedIn(visit, 'keys', {
        person: { roles: [], permissions: ['API_KEY:READ_OWN', 'API_KEY:UPDATE_OWN'] },
      });
      visit.expectTrouble(/^status 404: GET \S+\/nowhere$/);
      visit.expectTrouble(/^status 403: GET \S+\/(delete|new)$/);
      for (const [path, title] of [
        ['nowhere', 'Not found'],
        [`keys/${id}/delete`, 'Not allowed'],
        ['keys/new', 'New key'],
        [`keys/${id}/narrow`, 'Remove unused permissions'],
        [`keys/${id}/disable`, 'Disable Ada?'],
      ] as const) {
        await open(path);
        await isHeaded(page, title);
        await expectAccessible(page);
      }
    }),
  );

  it(
    'is accessible for a key that may only see itself',
    inBrowser(async (visit) => {
      const { page } = await signedIn(visit, '', { service: await startConsole(visit), person: { roles: ['GUEST'] } });
      await isHeaded(page, 'Ada active');
      await expectAccessible(page);
    }),
  );

  it(
    'is accessible for a key that may see no page',
    inBrowser(async (visit) => {
      visit.expectTrouble(/^status 403: GET \S+\/console\/$/);
      const { page } = await signedIn(visit, '', {
        service: await startConsole(visit),
        person: { roles: [], permissions: ['ONLINE:READ_ANY'] },
      });
      await isHeaded(page, 'No access');
      await expectAccessible(page);
    }),
  );
});
