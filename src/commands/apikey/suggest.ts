import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import { type Suggestion, suggestGrants } from '../../keys/authorization/suggest.ts';
import { listOf } from '../../keys/text.ts';
import type { OpenKeys } from '../../open-keys.ts';

export default class Suggest extends KeyCommand {
  static override summary = 'Suggest the fewest permissions that an API key needs, based on what it has used.';
  static override description =
    'The line on stdout can be pasted into "create" or "update"; grants that were never used are listed on stderr. ' +
    'Servers record what keys use with a delay of a few seconds.';
  static override examples = [
    { description: 'See what a key really needs', command: '<%= config.bin %> <%= command.id %> "CI deploy"' },
    {
      description: 'Grant a key just that',
      command:
        '<%= config.bin %> apikey<%= config.topicSeparator %>update "CI deploy" --no-roles\n' +
        '$(<%= config.bin %> <%= command.id %> "CI deploy")',
    },
  ];
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    const input = await this.parse(Suggest);
    await this.withKeys(input.flags.database, async (keys) => {
      const key = await this.findKey(keys, nameOf(input));
      const used = await keys.usedPermissionsOf(key.id);
      const [chain] = await keys.chainsOf([key]);
      const suggestion = suggestGrants(keys.accessOf(chain!), used.keys());
      const { uses, lastUsedAt } = await this.describe(keys, key);
      const line = suggestion.permissions.length > 0 ? `--permissions ${suggestion.permissions.join(',')}` : undefined;
      await this.print({ ...suggestion, uses, lastUsedAt }, line);
      if (!this.jsonEnabled()) for (const text of explain(key, suggestion, uses, keys)) await this.terminal.note(text);
    });
  }
}

/** Explains the line on stdout to the user. */
function explain(key: ApiKey, { permissions, unused }: Suggestion, uses: number, { catalog }: OpenKeys): string[] {
  const usage = `API key "${key.name}" was used ${uses} ${uses === 1 ? 'time' : 'times'}`;
  if (permissions.length === 0) return [`${usage}, and none of its grants was needed. There is nothing to suggest.`];
  const unusedPermissions = new Set(unused);
  const neverUsed = key.permissions.filter((permission) => unusedPermissions.has(permission));
  const roles = key.roles.map((role) => {
    const granted = [...new Set(catalog.permissionsOf(role))];
    const used = granted.filter((permission) => !unusedPermissions.has(permission));
    return `Role ${role}: ${used.length} of ${granted.length} permissions used.`;
  });
  return [
    `${usage}, for ${listOf(permissions)}.`,
    ...roles,
    ...(neverUsed.length > 0 ? [`Never used: ${listOf(neverUsed)}.`] : []),
  ];
}
