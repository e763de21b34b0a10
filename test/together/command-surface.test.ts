import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../../scripts/manifest-of.ts';
import { shortId } from '../../src/cli/short-id.ts';
import OwnHelp from '../../src/cli/help/own-help.ts';
import { ownConfig } from '../support/cli-here.ts';
import { ROOT, runCli } from '../support/process.ts';
import { runProgramHere } from '../support/program-here.ts';

/** Flags that scripts depend on: changing one breaks them. */
const WITHOUT_JSON = ['--config <path>', '--database <path>', '--no-color'];
const ALWAYS = ['--config <path>', '--database <path>', '--json', '--no-color'];
/** Flags of commands about keys. Commands that need the store itself refuse them, and do not list them. */
const PLACE = ['--server <url>', '--insecure'];
const ASKING = ['--no-input', '--yes'];
const END = ['--expires-at <date>', '--expires-in 90m|12h|30d'];
const NAMED = ['[name]', '--name <name>'];
const GRANTS = ['--permissions <resource:action,…> (list)', '--roles <role,…> (list)'];
const HELD = ['--allow-from <network,…> (list)', '--rate 100/m (list)', '--budget <number>', '--uses <number>'];
const LABELS = ['--description <text>', '--metadata <json>', '--owner <text>', '--tag <key=value,…> (list)'];
const FILTERS = [
  '--expires-within 14d',
  '--owner <name>',
  '--parent <name>',
  '--roles <role,…> (list)',
  '--search <text>',
  '--status <status>',
  '--tag <key=value,…> (list)',
  '--unused-for 90d',
];
const NEW_KEY = [...ALWAYS, ...PLACE, ...END, ...GRANTS, ...HELD, ...LABELS, '--name <name>', '--overwrite'];
const GUARD = [
  '--any-key',
  '--health-path <path>',
  '--methods any',
  '--forward-credential',
  '--pass-header <name> (list)',
  '--permission <resource:action,…> (list)',
  '--resource <resource>',
  '--send-header <name>=@<file> (list)',
  '--rewrite-host',
  '--timeout <seconds>',
];
const SERVING = [
  '--config <path>',
  '--database <path>',
  '--host <address>',
  '--keep-alive <seconds>',
  '--metrics-host <address>',
  '--metrics-port <port>',
  '--no-color',
  '--port <port>',
  '--request-log',
  '--socket <path>',
  '--tls-cert <path>',
  '--tls-key <path>',
  '--workers <number>',
];
const SURFACE: Record<string, string[]> = {
  apikey: ['--create', '--delete', ...NEW_KEY, ...ASKING],
  'apikey:requests:approve': ['<code>', ...END, ...GRANTS, ...ALWAYS, ...PLACE, ...ASKING],
  'apikey:apply': [
    '[file]',
    '--adopt',
    '--dry-run',
    '--exec <command>',
    '--file <path> (-f)',
    '--prune',
    '--schema',
    '--secrets-dir <folder>',
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:create': ['[name]', '--dry-run', ...NEW_KEY, ...ASKING],
  'apikey:autocomplete': ['[shell]', '--complete', '--config <path>', '--database <path>', '--no-color'],
  'apikey:revoke': [
    ...NAMED,
    ...ALWAYS,
    ...PLACE,
    ...ASKING,
    '--delete',
    '--dry-run',
    '--since <date>|24h',
    '--undo-changes',
  ],
  'apikey:delete': [...NAMED, '--dry-run', ...FILTERS, ...ALWAYS, ...PLACE, ...ASKING],
  'apikey:requests:deny': ['<code>', ...ALWAYS, ...PLACE, ...ASKING],
  'apikey:disable': [...NAMED, '--dry-run', ...FILTERS, ...ALWAYS, ...PLACE, ...ASKING],
  'apikey:enable': [...NAMED, ...ALWAYS, ...PLACE],
  'apikey:exec': [
    '--config <path>',
    '--database <path>',
    '--no-color',
    '--audience <text>',
    '--env <variable>',
    '--federated',
    '--name <name>',
    '--token-file <path>|-',
    '--learn',
    '--expires-in 90s|10m|1h',
    '--budget <number>',
    '--uses <number>',
    ...GRANTS,
    ...PLACE,
  ],
  'apikey:export': ['--overwrite', '--to <file or URL>', '--with-digests', ...ALWAYS, ...PLACE],
  'apikey:explain': [
    '[target]',
    '[detail]',
    '--key <name>',
    '--permissions <resource:action,…> (list)',
    '--preflight',
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:help': ['[subject]', '--config <path>', '--database <path>', '--no-color'],
  'apikey:import': ['[file]', '--dry-run', '--verbose', ...ALWAYS, ...PLACE],
  'apikey:list': [
    '--after <cursor>',
    '--all',
    '--attest <text>',
    '--columns <column,…> (list)',
    '--csv',
    '--exit-code',
    '--limit <number>',
    '--review',
    '--sort <field>',
    '--wide',
    ...FILTERS,
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:log': [
    '--action <action>',
    '--actor <actor>',
    '--before <number>',
    '--follow',
    '--head <number>:<hash>',
    '--key <name>',
    '--limit <number>',
    '--outcome <outcome>',
    '--prune',
    '--since <date>|7d',
    '--until <date>|7d',
    '--verify',
    '--wide',
    ...ALWAYS,
    ...PLACE,
    ...ASKING,
  ],
  'apikey:requests:list': ['--limit <number>', ...ALWAYS, ...PLACE],
  'apikey:rotate': [
    '--activate now|on-first-use',
    '--disable-created',
    '--finish',
    '--grace 90m|12h|7d',
    '--rollback',
    '--since <date>|24h',
    ...NAMED,
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:scan': [
    '[path]',
    '--report <file> (list)',
    '--revoke',
    '--rules gitleaks|trufflehog|pre-commit',
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:show': [...NAMED, ...ALWAYS, ...PLACE],
  'apikey:suggest': [...NAMED, ...ALWAYS, ...PLACE],
  'apikey:update': [
    '--detach',
    '--dry-run',
    '--no-allow-from',
    '--no-expiry',
    '--no-limits',
    '--no-permissions',
    '--no-roles',
    '--no-tags',
    '--rename <name>',
    ...LABELS,
    ...FILTERS.map((flag) => flag.replace('--', '--where-')),
    ...ASKING,
    ...NAMED,
    ...END,
    ...GRANTS,
    ...HELD,
    ...ALWAYS,
    ...PLACE,
  ],
  'apikey:usage': ['--by hour|day|tool', '--since <date>|7d', '--until <date>|7d', ...NAMED, ...ALWAYS, ...PLACE],
  'apikey:verify': ['--no-input', '--permission <resource:action>', ...ALWAYS, ...PLACE],
  'apikey:notices:test': ALWAYS,
  'apikey:plugins': WITHOUT_JSON,
  'apikey:plugins:install': ['<plugin>', ...WITHOUT_JSON],
  'apikey:plugins:uninstall': ['<plugin>', ...WITHOUT_JSON],
  'apikey:routes:check': ['--observed', ...ALWAYS, ...PLACE],
  'apikey:proxy': ['<proxy>', '--domain <name>', '--resource <resource>', '--routes', '--upstream <url>', ...ALWAYS],
  'apikey:routes:template': ['<service>', '--domain <name>', '--service-key <file>', '--upstream <url>', ...ALWAYS],
  'apikey:backup': ['<file>', '--overwrite', ...ALWAYS, ...PLACE],
  'apikey:doctor': ['--config-schema', '--fix', ...ALWAYS, ...PLACE],
  'apikey:edge': [
    '[upstream]',
    ...GUARD,
    '--ca <path>',
    '--client-cert <path>',
    '--client-key <path>',
    '--insecure',
    '--max-stale <duration>',
    '--name <name>',
    '--origin <url>',
    '--token-file <path>',
    ...SERVING.filter((flag) => !flag.startsWith('--workers')),
  ],
  'apikey:guard': ['[upstream]', '--accept-clock', ...GUARD, ...SERVING],
  'apikey:login': [
    '[server]',
    '--expires-in 90m|12h|30d',
    '--insecure',
    '--permissions <resource:action,…> (list)',
    '--roles <role,…> (list)',
    '--server <url>',
    ...ALWAYS,
  ],
  'apikey:logout': ['[server]', '--insecure', '--local', '--server <url>', ...ALWAYS, ...ASKING].toSorted(),
  'apikey:restore': [
    '<file>',
    '--restore-revoked <name> (list)',
    '--restore-revoked-all',
    '--dry-run',
    '--force',
    ...ALWAYS,
    ...PLACE,
    ...ASKING,
  ],
  serve: [...SERVING, '--accept-clock', '--no-console'].toSorted(),
};

interface Manifest {
  version: string;
  commands: Record<
    string,
    {
      id: string;
      isAtTop?: boolean;
      aliases: string[];
      args: Record<string, { required?: boolean }>;
      flags: Record<string, Flag>;
    }
  >;
}
interface Flag {
  type: 'boolean' | 'option';
  helpValue?: string;
  multiple?: boolean;
  char?: string;
  aliases?: string[];
  default?: unknown;
  hidden?: boolean;
}

/** A command's help, as printed. */
async function helpOf(id: readonly string[]): Promise<string> {
  let text = '';
  class WrittenHelp extends OwnHelp {
    protected override log(...lines: string[]): void {
      text += `${lines.join('\n')}\n`;
    }
  }
  await new WrittenHelp(await ownConfig()).showHelp([...id]);
  return text;
}

const manifestFile = readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8');
const manifest = JSON.parse(manifestFile) as Manifest;

describe('the commands', () => {
  it('have these arguments and flags, no aliases but --ttl and those of filters of update, and no defaults or other short forms', () => {
    const surface = Object.entries(manifest.commands).map(([id, { args, flags }]) => [
      id,
      [
        ...Object.entries(args).map(([name, { required }]) => (required ? `<${name}>` : `[${name}]`)),
        ...Object.entries(flags).map(([name, { type, helpValue, multiple, char }]) => {
          const value = type === 'option' ? ` ${helpValue}` : '';
          return `--${name}${value}${multiple ? ' (list)' : ''}${char ? ` (-${char})` : ''}`;
        }),
      ].toSorted(),
    ]);
    assert.deepEqual(
      Object.fromEntries(surface),
      Object.fromEntries(Object.entries(SURFACE).map(([id, flags]) => [id, flags.toSorted()])),
    );
    for (const { flags } of Object.values(manifest.commands)) {
      const { 'expires-in': expiresIn } = flags;
      if (expiresIn) assert.deepEqual(expiresIn.aliases, ['ttl']);
    }
    for (const [name, { aliases = [] }] of Object.entries(manifest.commands['apikey:update']!.flags))
      if (name.startsWith('where-'))
        assert.deepEqual(aliases, /owner|roles|tag/.test(name) ? [] : [name.slice('where-'.length)]);
    const aliases = Object.entries(manifest.commands).flatMap(([id, command]) =>
      command.aliases.map((alias) => [alias, id]),
    );
    assert.deepEqual(aliases, [
      ['apikey:add', 'apikey:create'],
      ['apikey:rm', 'apikey:delete'],
      ['apikey:ls', 'apikey:list'],
    ]);
    for (const { flags } of Object.values(manifest.commands)) {
      for (const flag of Object.values(flags)) assert.equal(flag.default, undefined);
    }
  });

  it('have flags that take the same in every command', () => {
    // `owner` takes any text, guards need several permissions, and exec also reads a token from stdin.
    const others = new Set(['owner <text>', 'permission <resource:action>', 'token-file <path>|-']);
    const forms = new Map<string, Set<string>>();
    for (const { flags } of Object.values(manifest.commands))
      for (const [name, { type, helpValue = '', multiple = false }] of Object.entries(flags)) {
        if (others.has(`${name} ${helpValue}`)) continue;
        const form = [type, multiple, helpValue.startsWith('<') ? helpValue.replace(/\|.*/, '') : ''].join(' ');
        forms.set(name, (forms.get(name) ?? new Set()).add(form));
      }
    assert.deepEqual(
      [...forms].filter(([, { size }]) => size > 1),
      [],
    );
  });

  it('are in the manifest as they were built', async () => {
    assert.equal(manifestFile, await manifestOf(), 'run: npm run build');
    assert.equal(
      manifest.version,
      (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version,
    );
  });

  it('are all below apikey, except serve, and those of our own program also have short names', async () => {
    const atTop =
      'autocomplete backup doctor edge explain guard login logout notices:test plugins plugins:install plugins:uninstall proxy requests:approve requests:deny requests:list restore routes:check routes:template'.split(
        ' ',
      );
    const ids = Object.keys(manifest.commands);
    assert.deepEqual(
      ids.filter((id) => !/^apikey(:|$)/.test(id)),
      ['serve'],
    );
    assert.deepEqual(
      Object.values(manifest.commands)
        .flatMap((command) => shortId(command) ?? [])
        .toSorted(),
      atTop,
    );
    const { commands } = await ownConfig();
    const ours = commands.filter(({ id, aliases, pluginName }) => pluginName === 'svc-api' && !aliases.includes(id));
    assert.deepEqual(ours.map(({ id }) => id).toSorted(), [...ids, ...atTop].toSorted());
    const shown = ours.filter(({ hidden }) => !hidden).map(({ id }) => id);
    assert.deepEqual(shown.toSorted(), [...ids.filter((id) => !shortId(manifest.commands[id]!)), ...atTop].toSorted());
  });

  it('show the short name in the help of both', async () => {
    for (const id of ['login', 'routes:check']) {
      const words = id.split(':');
      const [short, long] = await Promise.all([helpOf(words), helpOf(['apikey', ...words])]);
      assert.equal(long, short);
      assert.match(short, new RegExp(`\\$ svc-api ${words.join(' ')}\\b`));
    }
    assert.equal(await helpOf(['apikey', 'routes']), await helpOf(['routes']));
    assert.doesNotMatch(await helpOf(['apikey']), /^ {2}apikey (login|routes)/m);
  });

  for (const [name, flags] of Object.entries(SURFACE)) {
    const id = name.split(':');
    it(`describe themselves: ${id.join(' ')}`, async () => {
      // Both of its forms have pages of their own.
      const pages =
        name === 'apikey'
          ? [
              ['apikey', '--create'],
              ['apikey', '--delete'],
            ]
          : [id];
      const text = (await Promise.all(pages.map(helpOf))).join('\n');
      const shown = text.toLowerCase();
      const { flags: known } = manifest.commands[name]!;
      for (const flag of flags) {
        const word = flag.split(' ')[0]!.replaceAll(/[<>[\]]/g, '');
        assert.equal(shown.includes(word), !known[word.slice(2)]?.hidden, flag);
      }
      assert.match(text, /\nEXAMPLES\n/);
    });
  }

  it('describe themselves in the same way by --help, by -h and by help', async () => {
    for (const id of [['serve'], ['apikey', 'rotate']]) {
      const [long, short, asked] = await Promise.all([
        runCli([...id, '--help']),
        runProgramHere([...id, '-h']),
        runProgramHere(['help', ...id]),
      ]);
      assert.deepEqual(long, { stdout: await helpOf(id), stderr: '', code: 0, signal: null });
      assert.deepEqual([short, asked], [long, long]);
    }
  });

  it('offer no store if they open none', async () => {
    for (const id of ['help', 'autocomplete']) assert.doesNotMatch(await helpOf(['apikey', id]), /--database|--config/);
  });

  it('refuse a name that no command has', async () => {
    const { stderr, code } = await runProgramHere(['apikeys']);
    assert.match(stderr, /^Error: Unknown command: "apikeys"\. /);
    assert.equal(code, 2);
  });
});
