import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { inBrowser } from '../../support/browser.ts';
import { accessLevel, personWith, signIn, startConsole } from '../../support/browser/console-pages.ts';
import { isHeaded } from '../../support/browser/page.ts';
import type { Visit } from '../../support/browser/visit.ts';
import { freePort } from '../../support/port.ts';
import { needsPrograms } from '../../support/skip.ts';
import { tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

/** nginx in front of a service under a path. @returns its origin */
async function startNginx(visit: Visit, service: string): Promise<string> {
  const folder = tempFolder();
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/log; events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location /tools/keys/ { proxy_pass ${service}/; proxy_set_header Host $http_host; }
  }
}
`,
  );
  const nginx = spawn('nginx', ['-e', join(folder, 'log'), '-c', file], { stdio: 'inherit' });
  const origin = `http://127.0.0.1:${port}`;
  visit.started(origin, async () => {
    nginx.kill('SIGQUIT');
    await once(nginx, 'exit');
  });
  await until(() =>
    fetch(`${origin}/tools/keys/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return origin;
}

describe('the console under a path of a proxy, in a browser', () => {
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const follow = (page: Page, name: string) => page.getByRole('main').getByRole('link', { name, exact: true }).click();

  it('has all pages and forms', async function () {
    needsPrograms(this, 'nginx');
    const test = inBrowser(async (visit) => {
      const service = await startConsole(visit);
      const origin = await startNginx(visit, service.url);
      const { key } = await personWith(service, visit);
      const base = `${origin}/tools/keys/console/`;
      const page = await visit.open(base.slice(0, -1));
      await signIn(page, key);
      await isHeaded(page, 'Home');
      const is = async (title: string | RegExp) => {
        await page.getByRole('heading', { level: 1, name: title }).waitFor();
        assert.ok(page.url().startsWith(base), page.url());
      };
      for (const title of ['Approvals', 'Audit log', 'Routes', 'Limits', 'Health', 'Keys']) {
        await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click();
        await is(title);
      }
      await page.getByRole('searchbox').fill('nobody');
      await page.getByRole('searchbox').press('Enter');
      await is('Keys');
      await page.goto(`${base}keys/new`);
      await page.getByLabel('Name', { exact: true }).fill('Backup');
      await accessLevel(page, 'DOCKER', 'Read').check();
      await press(page, 'Preview');
      await is('Preview of Backup');
      await press(page, 'Create key');
      await is('Backup created');
      await press(page, 'I have stored it');
      await is(/^Backup/);
      await page.getByLabel('Check a permission').fill('DOCKER:READ_ANY');
      await press(page, 'Check');
      await page.getByText('Allowed: DOCKER:READ_ANY').waitFor();
      await follow(page, 'Edit');
      await page.getByLabel('Description').fill('At night');
      await press(page, 'Save');
      await page.getByText('Saved.').waitFor();
      await follow(page, 'Rotate');
      await press(page, 'Rotate');
      await is('New secret of Backup');
      await press(page, 'I have stored it');
      await follow(page, 'Finish it or roll it back');
      await press(page, 'Finish now');
      await page.getByText('Rotation finished').waitFor();
      await press(page, 'Disable');
      await page.getByText('Key disabled').waitFor();
      await press(page, 'Enable');
      await page.getByText('Key enabled').waitFor();
      await follow(page, 'Delete');
      await is('Delete Backup?');
      await press(page, 'Delete 1 key');
      await is('Deleted');
      await page.goto(`${base}requests`);
      await page.getByLabel('Code shown by the application').fill('WDJB-MJHT');
      visit.expectTrouble(/^status 404: GET \S+\/tools\/keys\/device\?/);
      await press(page, 'Continue');
      await page.getByRole('alert').waitFor();
      await page.goto(`${base}audit-log?actor=Ada`);
      await is('Audit log');
      await press(page, 'Sign out');
      await is('Sign in to svc-api');
    });
    await test.call(this);
  });
});
