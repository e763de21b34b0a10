import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inBrowser } from '../support/browser.ts';
import { takePicture } from '../support/browser/picture.ts';
import { runBlock } from '../support/pages.ts';
import { freePort } from '../support/port.ts';
import { cleanEnv, ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

const STYLE = `
  :root { color-scheme: light dark; }
  body { margin: 0; padding: 24px; background: light-dark(#f6f8fa, #0d1117); color: light-dark(#1f2328, #e6edf3); }
  pre { margin: 0; font: 15px/1.5 monospace; white-space: pre-wrap; }
  b { color: light-dark(#1a7f37, #3fb950); }`;

/** A page that looks like a terminal, with a prompt before each command. */
function terminalWith(parts: readonly (readonly [command: string, printed: string])[]): string {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const text = parts.map(([command, printed]) => `<b>$ ${escaped(command)}</b>\n${escaped(printed)}\n`).join('\n');
  return `<!doctype html><html lang="en"><title>A terminal</title><style>${STYLE}</style><main><pre>${text}</pre></main></html>`;
}

describe('the first minute', () => {
  it(
    'has a server, a key, and a request that is answered',
    inBrowser(async (visit) => {
      const [folder, port] = [tempFolder(), String(await freePort())];
      const env = { HOME: folder, SVC_API_PORT: port };
      const server = spawn(process.execPath, ['scripts/start.ts'], {
        cwd: ROOT,
        env: cleanEnv(env),
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      visit.started(`http://127.0.0.1:${port}`, async () => {
        const ended = once(server, 'exit');
        server.kill('SIGTERM');
        await ended;
      });
      let printed = '';
      for await (const chunk of server.stdout.setEncoding('utf8')) {
        printed += String(chunk);
        if (printed.includes('Delete the key')) break;
      }
      const request = /^ {2}echo [^]*?\}'$/m.exec(printed)![0];
      const { stdout } = await runBlock(request.replace('curl', 'curl --silent'), folder, {});
      assert.match(stdout, /"me":\{"name":"Quick start","roles":\["ADMIN"\]\}/);
      // Replaces what differs between runs of the screenshots.
      const steady = (text: string) =>
        text
          .replaceAll(/svc_\w{12}_\w{49}/g, 'svc_YWnb…')
          .replaceAll(port, '4000')
          .replaceAll(folder, '~')
          .replaceAll(/^ {2}(?=\S)/gm, '')
          .replaceAll(/(?<=\n)\n+/g, '');
      const page = await visit.open(
        (
          await visit.site(
            terminalWith([
              ['npm ci && npm start', steady(printed.slice(0, printed.indexOf('\nSign in'))).trimEnd()],
              [steady(request), stdout.trimEnd()],
            ]),
          )
        ).url,
        { width: 900 },
      );
      await takePicture(
        page,
        'first-minute',
        await page.evaluate<number>('Math.ceil(document.body.getBoundingClientRect().height)'),
      );
    }),
  );
});
