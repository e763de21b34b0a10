import * as Args from '@oclif/core/args';
import { examplesOf, type FlagsOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { addedFlags } from '../../cli/input/key-flags.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { commandText } from '../../cli/output.ts';
import { serverFlags } from '../../cli/with-keys.ts';
import type { CommandForm } from '../../feature.ts';
import { additionsTo } from '../../features/index.ts';
import { describeGrant } from '../../keys/authorization/index.ts';
import { formatList, printable } from '../../keys/basics/index.ts';
import type { Status } from '../../keys/key/index.ts';
import type { KeyDecision } from '../../keys/service/index.ts';

const NOT_ALLOWED = 4;

/** The form about a permission of a key. A name has no colon, a permission always one, and neither has a slash. */
const OF_KEY: CommandForm = {
  syntax: 'NAME RESOURCE:ACTION',
  args: ['name of a key', 'permission (RESOURCE:ACTION)'],
  description:
    'Checks whether the key has the permission, and through which grant. Exits with 0 if it is allowed and 4 if not. A ' +
    'disabled or expired key is not allowed anything.',
  examples: [
    ['Check whether a key can change dashboards', '"CI deploy" GRAFANA:UPDATE_ANY'],
    [
      'Check in a script',
      'if <%= config.bin %> <%= command.id %> "CI deploy" GRAFANA:UPDATE_ANY > /dev/null;\nthen echo deploy; fi',
    ],
  ],
  takes: (args) => args.length === 2 && args.some((arg) => arg.includes(':')) && !args.join('').includes('/'),
};

const ADDITIONS = additionsTo('apikey:explain');
const FORMS = [
  { form: OF_KEY, flags: {}, run: undefined },
  ...ADDITIONS.flatMap(({ form, flags, run }) => (form ? { form, flags, run } : [])),
];
const SYNTAXES = FORMS.map(({ form }) => form.syntax);

/** The arguments at a position, in all forms. */
function describeArgs(position: number): string {
  const text = formatList(
    FORMS.flatMap(({ form }) => form.args[position] ?? []),
    'or',
  );
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

export default class Explain extends KeyCommand {
  static override group = 'Keys';
  static override isAtTop = true;
  static override summary = 'Explain why something is allowed or not.';
  static override description = FORMS.map(({ form }) => `${form.syntax}\n${form.description}`).join('\n\n');
  static override usage = FORMS.map(({ form, flags }) => {
    const own = Object.entries(flags).map(
      ([name, { value }]) => `[--${name}${value === undefined ? '' : ` ${value}`}]`,
    );
    return ['<%= command.id %>', form.syntax, ...own, '[--json]'].join(' ');
  });
  static override examples = examplesOf(FORMS.flatMap(({ form }) => form.examples));
  static override args = {
    target: Args.string({ description: describeArgs(0), ignoreStdin: true }),
    detail: Args.string({ description: describeArgs(1), ignoreStdin: true }),
  };
  static override flags = addedFlags(ADDITIONS);

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Explain);
    const given = [args.target, args.detail].filter((arg) => arg !== undefined);
    const form = FORMS.find((each) => each.form.takes(given));
    if (!form) {
      const found = given.length === 0 ? 'The arguments are missing' : 'These arguments fit no form of this command';
      throw new CliError(
        'USAGE',
        `${found}. Pass ${formatList(SYNTAXES, 'or')}. Put a value that has spaces in quotes.`,
      );
    }
    this.refuseOthers(form, flags);
    if (form.run) return form.run(this.running(flags, given));
    const [name, permission] = given as [string, string];
    return this.explainKey(name, permission, flags);
  }

  /** @throws CliError USAGE for flags that belong to another form */
  private refuseOthers({ form, flags: own }: (typeof FORMS)[number], flags: FlagsOf<typeof Explain>): void {
    const given: Readonly<Record<string, unknown>> = flags;
    const others = [
      ...FORMS.flatMap((each) => Object.keys(each.flags)),
      ...(form === OF_KEY ? [] : Object.keys(serverFlags)),
    ];
    const wrong = others.filter((flag) => given[flag] !== undefined && !Object.hasOwn(own, flag));
    if (wrong.length === 0) return;
    const them = wrong.length === 1 ? 'it' : 'them';
    const list = formatList(wrong.map((flag) => `--${flag}`));
    throw new CliError('USAGE', `${list} cannot be used with ${form.syntax}. Leave ${them} out.`);
  }

  private async explainKey(name: string, wanted: string, flags: FlagsOf<typeof Explain>): Promise<object> {
    if (name.includes(':') && !wanted.includes(':')) {
      const line = `${commandText(this.config, this.ctor.id)} "${printable(wanted)}" ${printable(name)}`;
      throw new CliError('USAGE', `The name of the key comes first, then the permission. Run: ${line}`);
    }
    return this.withKeys(flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, name);
      const { allowed, permission, grantedBy, status, deniedBy } = await keys.decide(key, wanted);
      if (!allowed) process.exitCode = NOT_ALLOWED;
      const grants = formatList(grantedBy.map(describeGrant));
      const denying = deniedBy && { id: deniedBy.id, name: deniedBy.name };
      return this.printLines(
        { allowed, permission, grantedBy, status, ...(denying && { deniedBy: denying }) },
        allowed ? `yes: ${grants}` : `no: ${describeRefusal(grants, status, deniedBy)}`,
      );
    });
  }
}

function describeRefusal(grants: string, status: Status, deniedBy: KeyDecision['deniedBy']): string {
  if (!grants) return 'none of its grants includes it';
  if (!deniedBy) return `granted by ${grants}, but the key is ${status}`;
  const reason = status === 'ACTIVE' ? 'lacks it' : `is ${status}`;
  const parent = deniedBy.name === null ? 'a parent key' : `its parent key "${deniedBy.name}"`;
  return `granted by ${grants}, but ${parent} ${reason}`;
}
