import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { NOBODY, serviceMachine } from '../support/service-machine.ts';
import { needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/deploying.md';
/** Stubs that print their arguments, in place of programs that change the machine. */
const STUBS = 'systemctl() { echo systemctl "$@"; }; npm() { echo npm "$@"; }; userdel() { echo userdel "$@"; };\n';
const AS_SERVICE = 'runuser -u svc-api -- env SVC_API_DATABASE=/var/lib/svc-api/keys.sqlite svc-api apikey';

describe('docs/deploying.md, for a service', () => {
  before(function () {
    needsRoot(this);
  });

  it('copies the store, which belongs to the service, and the copy can take its place again', async () => {
    const { run, store, database } = serviceMachine();
    await run(`${AS_SERVICE} create --name Before --roles GUEST`);
    const { stdout, stderr, code } = await run(STUBS + blockWith('before.sqlite', PAGE));
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^systemctl stop svc-api\nnpm install --global \.\/svc-api-\S+\.tgz\nsystemctl start svc-api\nsvc-api\//,
    );
    const copy = statSync(join(store, 'before.sqlite'));
    assert.deepEqual([copy.uid, copy.mode & 0o777], [NOBODY, 0o600]);
    await run(`${AS_SERVICE} create --name After --roles GUEST`);
    copyFileSync(join(store, 'before.sqlite'), database);
    assert.match((await run(`${AS_SERVICE} list`)).stdout, /^Before\t.*\n$/);
  });

  it('removes all of a service', async () => {
    const { run, folder, store } = serviceMachine();
    await run(`${AS_SERVICE} create --name Key --roles GUEST`);
    mkdirSync(join(folder, 'units'));
    const units = join(folder, 'units');
    const own = [store, join(folder, 'bin/service-keys'), join(units, 'svc-api.service')];
    for (const file of own.slice(1)) writeFileSync(file, '');
    // As created by `systemctl edit`.
    mkdirSync(join(units, 'svc-api.service.d'));
    const { stdout, code } = await run(STUBS + blockWith('userdel', PAGE));
    const said = 'systemctl disable --now svc-api\nsystemctl daemon-reload\nuserdel svc-api\n';
    assert.deepEqual([stdout, code], [said, 0]);
    assert.deepEqual(own.filter(existsSync), []);
    assert.deepEqual(readdirSync(units), []);
  });

  it('removes its socket before the service, which a connection would start again', async () => {
    const { run, folder } = serviceMachine();
    const units = join(folder, 'units');
    mkdirSync(units);
    for (const unit of ['svc-api.socket', 'svc-api.service']) writeFileSync(join(units, unit), '');
    const { stdout } = await run(STUBS + blockWith('userdel', PAGE));
    assert.match(stdout, /^systemctl disable --now svc-api\.socket\nsystemctl disable --now svc-api\n/);
    assert.deepEqual(readdirSync(units), []);
  });
});

describe('docs/deploying.md, on removing', () => {
  const REMOVE = blockWith('XDG_CACHE_HOME', PAGE);

  it('names all that is left in a home: store, caches, completion', async () => {
    const [home, folder] = [tempFolder(), tempFolder()];
    const env = { HOME: home, XDG_CACHE_HOME: undefined, PATH: pathWithCli(folder) };
    writeFileSync(join(home, '.bashrc'), 'echo mine\n');
    const used = await runBlock(
      `svc-api apikey create --name A --roles GUEST
      for shell in bash zsh; do svc-api autocomplete $shell >> ~/.\${shell}rc; done
      echo 'echo last' >> ~/.bashrc
      mkdir -p ~/.config/fish/conf.d
      svc-api autocomplete fish > ~/.config/fish/conf.d/svc-api.fish`,
      folder,
      env,
    );
    assert.equal(used.code, 0, used.stderr);
    const { code, stderr } = await runBlock(REMOVE, folder, env);
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(globSync('**/*svc-api*', { cwd: home }), []);
    assert.deepEqual(
      ['.bashrc', '.zshrc'].map((file) => readFileSync(join(home, file), 'utf8').trim()),
      ['echo mine\necho last', ''],
    );
  });

  it('can be followed where there is nothing to remove', async () => {
    const { code, stderr } = await runBlock(REMOVE, tempFolder(), { HOME: tempFolder(), XDG_CACHE_HOME: undefined });
    assert.deepEqual([code, stderr], [0, '']);
  });
});
