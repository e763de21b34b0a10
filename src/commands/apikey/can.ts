import * as Args from '@oclif/core/args';
import { examplesOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { commandText } from '../../cli/output.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import type { KeyDecision } from '../../keys/service/index.ts';
import { describeGrant } from '../../keys/authorization/index.ts';
import type { Status } from '../../keys/key/index.ts';
import { formatList, printable } from '../../keys/basics/index.ts';

const NOT_ALLOWED = 4;

export default class Can extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Check whether an API key has a permission, and through which grant.';
  static override description =
    'Exits with 0 if it is allowed and 4 if not. A disabled or expired key is not allowed anything.';
  static override examples = examplesOf([
    ['Check whether a key can update containers', '"CI deploy" DOCKER:UPDATE_ANY'],
    [
      'Check in a script',
      'if <%= config.bin %> <%= command.id %> "CI deploy" DOCKER:UPDATE_ANY > /dev/null;\nthen echo deploy; fi',
    ],
  ]);
  static override args = {
    name: Args.string({ description: 'Name of the key.', required: true, ignoreStdin: true }),
    permission: Args.string({
      description: 'The permission to check, as RESOURCE:ACTION.',
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Can);
    // A name has no colon, and a permission always has one.
    if (args.name.includes(':') && !args.permission.includes(':')) {
      const line = `${commandText(this.config, this.ctor.id)} "${printable(args.permission)}" ${printable(args.name)}`;
      throw new CliError('USAGE', `The name of the key comes first, then the permission. Run: ${line}`);
    }
    return this.withKeys(flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, args.name);
      const { allowed, permission, grantedBy, status, deniedBy } = await keys.decide(key, args.permission);
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
