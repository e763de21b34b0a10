import assert from 'node:assert/strict';
import { inBrowser } from '../../support/browser.ts';
import { signedIn, startConsole } from '../../support/browser/console-pages.ts';
import { WAYS } from '../../support/browser/hands.ts';
import { isHeaded, textOf } from '../../support/browser/page.ts';
import { APP, askDevice, pollDevice } from '../../features/consent/support/consent.ts';

for (const [words, look, handsOn] of WAYS)
  it(
    `what applications ask for is agreed to, or refused, in the console, ${words}`,
    inBrowser(async (visit) => {
      const service = await startConsole(visit, { consent: 'both', app: { clients: [APP] } });
      const { page, open, url, time } = await signedIn(visit, 'requests', { service, look });
      const hands = handsOn(page);
      await hands.look();
      const [agreed, refused] = [
        await askDevice(url, { scope: 'DOCKER:READ_ANY role:GUEST', key_expires_in: '30d' }),
        await askDevice(url, { scope: 'role:ADMIN' }),
      ];
      /** The response to the application that polls with its code. */
      const answerTo = async ({ device_code }: typeof agreed) => {
        time.now += 10_000;
        const { body } = await pollDevice(url, device_code);
        if (typeof body['access_token'] === 'string') visit.isSecret(body['access_token']);
        return body['scope'] ?? body['error'];
      };
      await open('requests');
      await hands.look();
      const code = page.getByLabel('Code shown by the application');
      visit.expectTrouble(/^status 404: GET \S+\/device\?user_code=BBBB-BBBB$/);
      await hands.fill(code, 'BBBB-BBBB');
      await hands.press(page.getByRole('button', { name: 'Continue' }));
      await page.getByRole('alert').waitFor();
      await hands.look();
      await hands.fill(code, agreed.user_code.toLowerCase());
      await hands.press(page.getByRole('button', { name: 'Continue' }));
      await isHeaded(page, 'Grafana sync asks for an API key');
      await hands.look();
      await hands.untick(page.getByRole('checkbox', { name: 'GUEST' }));
      await hands.choose(page.getByLabel('Expires'), '7 days');
      await hands.press(page.getByRole('button', { name: 'Approve' }));
      await isHeaded(page, 'Approved');
      await hands.look();
      assert.equal(await answerTo(agreed), 'DOCKER:READ_ANY');

      await hands.press(page.getByRole('link', { name: 'Approvals', exact: true }).first());
      await isHeaded(page, 'Approvals');
      await hands.press(page.getByRole('button', { name: 'Deny Grafana sync' }));
      await page.getByRole('status').waitFor();
      assert.match(await textOf(page.getByRole('status')), /Request denied/);
      assert.equal(await answerTo(refused), 'access_denied');
    }),
  );
