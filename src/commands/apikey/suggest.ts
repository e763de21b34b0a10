import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import type { ApiKey } from '../../keys/key/api-key.ts';
import { type Suggestion, suggestGrants } from '../../keys/authorization/suggest.ts';
import { listOf } from '../../keys/text.ts';
import type { OpenKeys } from '../../open-keys.ts';

export default class Suggest extends KeyCommand {
  static override summary = 'Suggest the smallest grants that an API key needs, by what it has used.';
  static override description = `The line on stdout can be pasted into "create" or "update"; what was never used goes to stderr. Servers write down what keys use, a few seconds later.`;
  static override examples = [
    { description: 'What does it really need?', command: '<%= config.bin %> apikey suggest "CI deploy"' },
    {
      description: 'Let it do just that',
      command: '<%= config.bin %> apikey update "CI deploy" --no-roles $(<%= config.bin %> apikey suggest "CI deploy")',
    },
  ];
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<void> {
    const input = await this.parse(Suggest);
    await this.withKeys(input.flags.database, async (keys) => {
      const key = await this.findKey(keys, nameOf(input));
      const used = await keys.usedPermissionsOf(key.id);
      const suggestion = suggestGrants(key, used.keys(), keys.catalog);
      const { uses, lastUsedAt } = await this.describe(keys, key);
      const line = suggestion.permissions.length > 0 ? `--permissions ${suggestion.permissions.join(',')}` : undefined;
      this.print({ ...suggestion, uses, lastUsedAt }, line);
      if (!this.jsonEnabled()) for (const text of explain(key, suggestion, uses, keys)) this.terminal.note(text);
    });
  }
}

/** What the line on stdout is made from, for who reads it. */
function explain(key: ApiKey, { permissions, unused }: Suggestion, uses: number, { catalog }: OpenKeys): string[] {
  const seen = `API key "${key.name}" was used ${uses} ${uses === 1 ? 'time' : 'times'}`;
  if (permissions.length === 0) return [`${seen}, and none of its grants was needed. There is nothing to suggest.`];
  const never = new Set(unused);
  const needless = key.permissions.filter((grant) => never.has(grant));
  const roles = key.roles.map((role) => {
    const grants = [...new Set(catalog.permissionsOf(role))];
    return `Role ${role}: ${grants.filter((grant) => !never.has(grant)).length} of ${grants.length} grants used.`;
  });
  return [
    `${seen}, for ${listOf(permissions)}.`,
    ...roles,
    ...(needless.length > 0 ? [`Never used: ${listOf(needless)}.`] : []),
  ];
}
