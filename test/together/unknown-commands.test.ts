import assert from 'node:assert/strict';
import { ownCommands } from '../support/cli-here.ts';
import { runProgramHere } from '../support/program-here.ts';

const commands = await ownCommands();
const [LAST_VERB, ...OTHER_VERBS] = Object.entries(commands)
  .flatMap(([id, { hidden }]) => (hidden || !id.startsWith('apikey:') ? [] : [id.split(':')[1]!]))
  .toSorted()
  .toReversed();
const VERBS = `${OTHER_VERBS.toReversed().join(', ')} and ${LAST_VERB}`;
const ROOT_COMMANDS =
  'The commands of "svc-api" are apikey, autocomplete, backup, doctor, edge, explain, guard, help, ' +
  'login, logout, notices, plugins, proxy, requests, restore, routes, serve and version.';
const HELP_SUBJECTS =
  'Help is available for apikey, autocomplete, backup, doctor, edge, environment, exit-codes, ' +
  'explain, guard, help, login, logout, notices, plugins, proxy, requests, restore, routes, serve and version.';
const TOPIC_COMMANDS = `The commands of "svc-api apikey" are ${VERBS}.`;
const AT_ROOT = ['svc-api [COMMAND]', 'svc-api --help'] as const;
const AT_TOPIC = ['svc-api apikey COMMAND', 'svc-api apikey --help'] as const;
const LIST = 'Did you mean "svc-api apikey list"?';
const FLAGS_LAST = 'Flags come after the command, as in: svc-api apikey list --json';
const SECRET = `svc_0a1B2c3D4e5F_${'x'.repeat(49)}`;

const ROWS: readonly (readonly [args: string, error: string, usage: readonly [string, string]])[] = [
  ['nope', `Unknown command: "nope". ${ROOT_COMMANDS}`, AT_ROOT],
  ['serv', `Unknown command: "serv". Did you mean "svc-api serve"? ${ROOT_COMMANDS}`, AT_ROOT],
  ['list', `Unknown command: "list". ${LIST} ${ROOT_COMMANDS}`, AT_ROOT],
  ['apkey list X', `Unknown command: "apkey". ${LIST} ${ROOT_COMMANDS}`, AT_ROOT],
  ['log CI', `Unknown command: "log". Did you mean "svc-api apikey log"? ${ROOT_COMMANDS}`, AT_ROOT],
  ['ls', `Unknown command: "ls". ${LIST} ${ROOT_COMMANDS}`, AT_ROOT],
  ['rm CI', `Unknown command: "rm". Did you mean "svc-api apikey delete"? ${ROOT_COMMANDS}`, AT_ROOT],
  ...(
    [
      ['get', 'show'],
      ['new', 'create'],
      ['remove', 'delete'],
      ['contain', 'revoke --undo-changes'],
      ['review', 'list --review'],
      ['copy', 'export --to'],
      ['adopt', 'update --detach'],
      ['rename', 'update'],
    ] as const
  ).map(
    ([word, verb]) =>
      [
        `apikey ${word}`,
        `Unknown command: "apikey ${word}". Did you mean "svc-api apikey ${verb}"? ${TOPIC_COMMANDS}`,
        AT_TOPIC,
      ] as const,
  ),
  ...(
    [
      ['approve', 'requests approve'],
      ['deny', 'requests deny'],
      ['compact', 'doctor --fix'],
      ['edges', 'doctor'],
      ['can', 'explain'],
    ] as const
  ).flatMap(([old, existing]) => [
    [
      `${old} X`,
      `Unknown command: "${old.split(' ')[0]}". Did you mean "svc-api ${existing}"? ${ROOT_COMMANDS}`,
      AT_ROOT,
    ] as const,
    [
      `apikey ${old} X`,
      `Unknown command: "apikey ${old}". Did you mean "svc-api ${existing}"? ${TOPIC_COMMANDS}`,
      AT_TOPIC,
    ] as const,
  ]),
  ['apikey nope', `Unknown command: "apikey nope". ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey lst', `Unknown command: "apikey lst". ${LIST} ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey lsit hunter2', `Unknown command: "apikey lsit". ${LIST} ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey:lst', `Unknown command: "apikey lst". ${LIST} ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey LST --roles ADMIN', `Unknown command: "apikey LST". ${LIST} ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey lst --help', `Unknown command: "apikey lst". ${LIST} ${TOPIC_COMMANDS}`, AT_TOPIC],
  [
    'routes observed',
    'Unknown command: "routes observed". Did you mean "svc-api routes check --observed"? ' +
      'The commands of "svc-api routes" are check and template.',
    ['svc-api routes COMMAND', 'svc-api routes --help'],
  ],
  [
    'routes chek',
    'Unknown command: "routes chek". Did you mean "svc-api routes check"? ' +
      'The commands of "svc-api routes" are check and template.',
    ['svc-api routes COMMAND', 'svc-api routes --help'],
  ],
  [
    'routes explain GET https://a.example',
    'Unknown command: "routes explain". Did you mean "svc-api explain"? ' +
      'The commands of "svc-api routes" are check and template.',
    ['svc-api routes COMMAND', 'svc-api routes --help'],
  ],
  [
    'federation explain ./token',
    `Unknown command: "federation". Did you mean "svc-api explain"? ${ROOT_COMMANDS}`,
    AT_ROOT,
  ],
  ['verison', `Unknown command: "verison". Did you mean "svc-api version"? ${ROOT_COMMANDS}`, AT_ROOT],
  ['help lst', `Unknown command: "lst". Did you mean "svc-api help apikey list"? ${HELP_SUBJECTS}`, AT_ROOT],
  ['help exit-code', `Unknown command: "exit-code". Did you mean "svc-api help exit-codes"? ${HELP_SUBJECTS}`, AT_ROOT],
  [
    'help apikey lst',
    `Unknown command: "apikey lst". Did you mean "svc-api help apikey list"? ${TOPIC_COMMANDS}`,
    AT_TOPIC,
  ],
  [`apikey ${SECRET}`, `Unknown command: "apikey svc_0a1B2c3D4e5F_…". ${TOPIC_COMMANDS}`, AT_TOPIC],
  ['apikey \u001b[2Jlist', `Unknown command: "apikey <U+001B>[2Jlist". ${TOPIC_COMMANDS}`, AT_TOPIC],
  [
    `apikey ${'list'.repeat(50)}`,
    `Unknown command: "apikey ${'list'.repeat(50).slice(0, 53)}…". ${TOPIC_COMMANDS}`,
    AT_TOPIC,
  ],
  ['--nope', `The first argument is the flag --nope, not a command. ${FLAGS_LAST}`, AT_ROOT],
  ['--token=hunter2 apikey list', `The first argument is the flag --token, not a command. ${FLAGS_LAST}`, AT_ROOT],
  ['--hlep', 'The first argument is the flag --hlep, not a command. Did you mean --help?', AT_ROOT],
];

describe('a command that does not exist', () => {
  for (const [typed, error, [usage, help]] of ROWS) {
    it(`is refused with what may have been meant, and what there is: ${JSON.stringify(typed)}`, async () => {
      const args = typed.split(' ');
      const [plain, json] = await Promise.all([runProgramHere(args), runProgramHere([...args, '--json'])]);
      const text = `Error: ${error}\nCode: USAGE\nUsage: ${usage}\nSee ${help}\n`;
      assert.deepEqual(plain, { stdout: '', stderr: text, code: 2, signal: null });
      if (args[0] === 'help') return;
      const document = (message: string) => `${JSON.stringify({ error: message, code: 'USAGE' }, null, 2)}\n`;
      assert.deepEqual(json, { stdout: document(error), stderr: '', code: 2, signal: null });
    });
  }

  it('is refused for a flag that comes first', async () => {
    const error = `The first argument is the flag --json, not a command. ${FLAGS_LAST}`;
    const { stdout, code } = await runProgramHere(['--json', 'nope']);
    assert.deepEqual([JSON.parse(stdout), code], [{ error, code: 'USAGE' }, 2]);
  });

  it('is one JSON object also if help is requested, and with --json alone', async () => {
    for (const args of [['help', 'lst', '--json'], ['--json'], ['--json', '--nope']]) {
      const { stdout, stderr, code } = await runProgramHere(args);
      const { error, code: name, ...others } = JSON.parse(stdout) as Record<string, string>;
      assert.deepEqual([typeof error, name, others, stderr, code], ['string', 'USAGE', {}, '', 2]);
    }
  });
});

describe('a topic without a command', () => {
  it('shows its commands', async () => {
    for (const typed of ['requests', 'apikey requests', 'requests --help', 'help requests']) {
      const { stdout, stderr, code } = await runProgramHere(typed.split(' '));
      assert.deepEqual([stderr, code], ['', 0]);
      const listed = Array.from(stdout.matchAll(/^ {2}requests ([a-z]+) {2}/gm), ([, verb]) => verb);
      assert.deepEqual(listed, ['approve', 'deny', 'list']);
    }
  });
});

describe('an argument that a command does not have', () => {
  const LEFT_OUT = 'Leave it out, or put a value that has spaces in quotes.';

  it('is refused with the usage of the command', async () => {
    const [list, serve, json] = await Promise.all([
      runProgramHere(['apikey', 'list', 'nope']),
      runProgramHere(['serve', 'nope']),
      runProgramHere(['apikey:list', 'nope', '--json']),
    ]);
    const error = `Unexpected argument: nope. ${LEFT_OUT}`;
    const listed = /^Error: (.*)\nCode: USAGE\nUsage: svc-api apikey list \[[^]*\]\nSee svc-api apikey list --help\n$/;
    assert.equal(listed.exec(list.stderr)?.[1], error);
    const served = /^Error: (.*)\nCode: USAGE\nUsage: svc-api serve \[[^]*\]\nSee svc-api serve --help\n$/;
    assert.equal(served.exec(serve.stderr)?.[1], error);
    assert.deepEqual([JSON.parse(json.stdout), json.stderr, json.code], [{ error, code: 'USAGE' }, '', 2]);
  });

  it('is a command that was meant, where flags stand before it', async () => {
    const { stdout, code } = await runProgramHere(['apikey', '--json', 'lst']);
    const error = 'Unexpected argument: lst. Did you mean "svc-api apikey list"?';
    assert.deepEqual([JSON.parse(stdout), code], [{ error, code: 'USAGE' }, 2]);
  });
});
