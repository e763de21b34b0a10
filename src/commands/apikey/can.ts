import * as Args from '@oclif/core/args';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { describeGrant, readPermission } from '../../keys/authorization/explain.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import type { Status } from '../../keys/key/status.ts';
import { listOf } from '../../keys/text.ts';

const NOT_ALLOWED = 4;

export default class Can extends KeyCommand {
  static override summary = 'Check whether an API key has a permission, and through which grant.';
  static override description = 'Exits with 0 for yes and 4 for no. For a disabled or expired key, the answer is no.';
  static override examples = [
    {
      description: 'Check whether a key may update containers',
      command: '<%= config.bin %> <%= command.id %> "CI deploy" DOCKER:UPDATE_ANY',
    },
    {
      description: 'In a script',
      command:
        'if <%= config.bin %> <%= command.id %> "CI deploy" DOCKER:UPDATE_ANY > /dev/null;\nthen echo deploy; fi',
    },
  ];
  static override args = {
    name: Args.string({ description: 'Name of the key.', required: true, ignoreStdin: true }),
    permission: Args.string({
      description: 'The permission to check, as RESOURCE:ACTION.',
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Can);
    await this.withKeys(flags.database, async (keys) => {
      const permission = readPermission(args.permission, keys.catalog);
      const key = await this.findKey(keys, args.name);
      const [chain] = await keys.chainsOf([key]);
      const { allowed, grantedBy, status, deniedBy } = keys.decide(chain!, permission);
      if (!allowed) process.exitCode = NOT_ALLOWED;
      const grants = listOf(grantedBy.map(describeGrant));
      const denying = deniedBy && { id: deniedBy.id, name: deniedBy.name };
      await this.print(
        { allowed, permission, grantedBy, status, ...(denying && { deniedBy: denying }) },
        allowed ? `yes: ${grants}` : `no: ${refusalOf(grants, status, deniedBy)}`,
      );
    });
  }
}

function refusalOf(grants: string, status: Status, deniedBy: ApiKey | null): string {
  if (!grants) return 'none of its grants allows it';
  if (!deniedBy) return `${grants} would allow it, but the key is ${status}`;
  const reason = status === 'ACTIVE' ? 'lacks it' : `is ${status}`;
  return `${grants} would allow it, but "${deniedBy.name}", which is above it, ${reason}`;
}
