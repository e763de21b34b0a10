import * as Args from '@oclif/core/args';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { describeGrant, grantsBehind, readPermission } from '../../keys/authorization/explain.ts';
import { listOf } from '../../keys/text.ts';

const NOT_ALLOWED = 4;

export default class Can extends KeyCommand {
  static override summary = 'Check whether an API key has a permission, and through which grant.';
  static override description = 'Exits with 0 for yes and 4 for no. For a disabled or expired key, the answer is no.';
  static override examples = [
    {
      description: 'Check whether a key may update containers',
      command: '<%= config.bin %> apikey can "CI deploy" DOCKER:UPDATE_ANY',
    },
    {
      description: 'In a script',
      command: 'if <%= config.bin %> apikey can "CI deploy" DOCKER:UPDATE_ANY > /dev/null; then echo deploy; fi',
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
      const grantedBy = grantsBehind(key, permission, keys.catalog);
      const status = keys.statusOf(key);
      const allowed = grantedBy.length > 0 && status === 'ACTIVE';
      if (!allowed) process.exitCode = NOT_ALLOWED;
      const grants = listOf(grantedBy.map(describeGrant));
      const refusal = grants ? `${grants} would allow it, but the key is ${status}` : 'none of its grants allows it';
      this.print({ allowed, permission, grantedBy, status }, allowed ? `yes: ${grants}` : `no: ${refusal}`);
    });
  }
}
