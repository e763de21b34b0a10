import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { Machine } from '../support/machine.ts';
import { blockWith } from '../support/pages.ts';
import { startPostgresServer } from '../support/postgres.ts';
import { ROOT } from '../support/process.ts';
import { CONFIGURATIONS, KEY_FILE, writeCaddy, writeNginx } from '../support/proxies/configurations.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';
import { CERTIFICATE } from '../support/tls-proxy.ts';
import { walk } from '../support/walk.ts';

describe('pages that are followed from top to bottom', () => {
  before(function () {
    needsRoot(this);
    needsPrograms(this, 'unshare', 'ip', 'curl');
  });

  for (const page of ['docs/tutorials/guard.md', 'docs/tutorials/pipeline.md', 'docs/how-to/friend.md'])
    it(`${page} shows the actual output`, () => walk(page, new Machine()));

  it('docs/tutorials/app.md shows the actual output', async () => {
    const machine = new Machine();
    const packages = join(machine.folder, 'node_modules');
    mkdirSync(join(packages, '.bin'), { recursive: true });
    symlinkSync(ROOT, join(packages, 'svc-api'));
    symlinkSync(join(ROOT, 'bin/run.js'), join(packages, '.bin/svc-api'));
    symlinkSync(join(ROOT, 'node_modules/express'), join(packages, 'express'));
    await walk('docs/tutorials/app.md', machine, {
      // Its packages are already installed.
      adapt: (text) => text.replace(/^npm install .*\n/m, ''),
    });
  });

  it('docs/plugins/writing.md shows the actual output', () => walk('docs/plugins/writing.md', new Machine()));

  it('docs/how-to/leaked-key.md shows the actual output', () =>
    walk('docs/how-to/leaked-key.md', new Machine(), {
      setup: 'git init --quiet . && svc-api apikey create "Ops" --roles ADMIN > /dev/null',
      confirmed: 'svc-api apikey revoke "Ops"',
      // Prompts only if there are changes to undo.
      adapt: (text) => text.replace(/--undo-changes$/m, '$& --yes'),
    }));

  it('docs/how-to/move-to-postgresql.md shows the actual output', async () => {
    const page = 'docs/how-to/move-to-postgresql.md';
    const folder = tempFolder();
    const server = await startPostgresServer(folder);
    const { port } = new URL(server.url);
    const psql = new Client(server.url);
    await psql.connect();
    try {
      for (const statement of blockWith('create database', page, 'sql').trim().split('\n')) await psql.query(statement);
      await walk(page, new Machine(), {
        setup: 'for each in One Two; do svc-api apikey create $each --roles GUEST; done',
        adapt: (text) => text.replace('svc@db.internal/keys?', `svc@localhost:${port}/keys?host=${folder}&`),
      });
    } finally {
      await psql.end();
      await server.stop();
    }
  });

  /** Follows a page about a proxy in front of Grafana. Files that need `sudo` are in the machine's folder. */
  const behind = (page: string, machine: Machine, commands: Readonly<Record<string, string>>) =>
    walk(page, machine, {
      setup: `node -e 'http.createServer((_, answer) => answer.end("{}")).listen(3000, "127.0.0.1")' &`,
      adapt(text) {
        let adapted = text.replaceAll(
          'curl --silent',
          'curl --silent --insecure --retry 9 --retry-delay 1 --retry-connrefused --resolve grafana.example.org:443:127.0.0.1',
        );
        for (const [command, here] of Object.entries(commands)) adapted = adapted.replace(`sudo ${command}`, here);
        return adapted.replaceAll(/^sudo .*\n/gm, '');
      },
    });

  it('docs/how-to/caddy.md shows the actual output', async function () {
    needsPrograms(this, 'caddy');
    const machine = new Machine();
    const [run, ...args] = writeCaddy('', machine);
    const file = join(machine.folder, 'Caddyfile');
    writeFileSync(file, '{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n}\n');
    await behind('docs/how-to/caddy.md', machine, {
      'tee --append /etc/caddy/Caddyfile': `tee --append ${file}`,
      'systemctl reload caddy': `caddy ${run} ${args.join(' ')} 2> caddy.log &`,
    });
  });

  it('docs/how-to/nginx.md shows the actual output', async function () {
    needsPrograms(this, 'nginx');
    const machine = new Machine();
    const args = writeNginx('include site.conf;', machine).join(' ');
    await behind('docs/how-to/nginx.md', machine, {
      'cp grafana.conf /etc/nginx/conf.d/grafana.conf': `sed 's|/etc/ssl/private.*key|${KEY_FILE}|; s|/etc/ssl/.*pem|${CERTIFICATE}|' grafana.conf > site.conf`,
      'nginx -t': `nginx ${args} -t`,
      'systemctl reload nginx': `nginx ${args} 2> nginx.log &`,
    });
  });

  for (const program of ['haproxy', 'apache2'] as const) {
    const page = `docs/how-to/${program.replace('2', '')}.md`;
    it(`${page} shows the actual output`, async function () {
      needsPrograms(this, program);
      const machine = new Machine();
      // Apart from the files with the same names that the page creates.
      const folder = join(machine.folder, 'proxy');
      mkdirSync(folder);
      const place = { folder, port: 443, svcApi: program === 'haproxy' ? 4000 : 8080, service: 3000 };
      const args = CONFIGURATIONS.find((each) => each.program === program)!
        .write(place, (text, replacements) =>
          Object.entries(replacements).reduce((changed, [old, here]) => changed.replaceAll(old, here), text),
        )
        .join(' ');
      await behind(page, machine, {
        [`systemctl reload ${program}`]: `PATH="$PATH:/usr/sbin" ${program} ${args} > proxy.log 2>&1 &`,
      });
    });
  }
});
