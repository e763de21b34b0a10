import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { inBrowser } from '../../support/browser.ts';
import { signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { WAYS } from '../../support/browser/hands.ts';
import { isHeaded } from '../../support/browser/page.ts';

for (const [words, look, handsOn] of WAYS)
  it(
    `a key is rotated in the console some time after signing in, ${words}, by entering the key again`,
    inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const { apiKey } = await service.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
      const path = `keys/${apiKey.id}/rotation`;
      const { page, key, time } = await signedIn(visit, path, { service, look });
      const hands = handsOn(page);
      const rotate = page.getByRole('button', { name: 'Rotate', exact: true });
      // The page was opened in time, and its form is sent too late.
      time.now += 6 * 60_000;
      visit.expectTrouble(/^status 40[03]: POST \S+\/rotation$/);
      await hands.fill(page.getByLabel('Grace period'), '3h');
      await hands.press(rotate);
      await page.getByText('Enter your API key.').waitFor();
      await hands.look();
      await hands.fill(page.getByLabel('Your API key'), 'svc_nonsense');
      await hands.press(rotate);
      await page.getByText('The API key is not valid.').waitFor();
      await hands.fill(page.getByLabel('Your API key'), key);
      await hands.press(rotate);
      await isHeaded(page, 'New secret of CI');
      visit.isSecret(await page.getByLabel('Secret of CI').inputValue());
      await page.getByText('The grace period ends in 3 hours').waitFor();
    }),
  );
