import { examplesOf } from '../../../../cli/base-command.ts';
import { KeyCommand, nameOf } from '../../../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../../../cli/input/key-flags.ts';
import { toolJson } from '../../cli/usage-view.ts';
import { keyQuestions } from '../../operations.ts';
import type { Suggestion } from '../../suggest.ts';
import type { Client } from '../../../../keys/operations/index.ts';
import type { KeyState } from '../../../../keys/service/index.ts';
import { withoutIncluded } from '../../../../keys/permissions/index.ts';
import { formatTime, formatList } from '../../../../keys/basics/index.ts';

export default class Suggest extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Suggest the fewest grants that an API key needs.';
  static override description =
    'The line on stdout can be pasted into "create" or "update"; grants that were never used are listed on stderr. ' +
    'A role is suggested only if the key has granted that role to another key: it needs the role itself for that. ' +
    'Servers record what keys use with a delay of a few seconds.';
  static override examples = examplesOf([
    ['See what a key really needs', '"CI deploy"'],
    [
      'Grant a key just that',
      '<%= config.bin %> apikey<%= config.topicSeparator %>update "CI deploy" --no-roles\n' +
        '--no-permissions $(<%= config.bin %> <%= command.id %> "CI deploy")',
    ],
  ]);
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<object> {
    const input = await this.parse(Suggest);
    return this.withKeys(input.flags, async (keys) => {
      const state = await this.findKey(keys, nameOf(input));
      const suggestion = await keys.of(keyQuestions).keySuggestion({ id: state.apiKey.id });
      const { uses, lastUsedAt } = state.use;
      const line = lineOf(suggestion);
      const explained = this.jsonEnabled() ? [] : await explain(state, suggestion, keys);
      const tools = suggestion.tools.map(toolJson);
      const shown = await this.print({ ...suggestion, tools, uses, lastUsedAt: formatTime(lastUsedAt) }, line);
      for (const text of explained) await this.terminal.note(text);
      return shown;
    });
  }
}

/** The suggested grants as flags; undefined if there are none. */
function lineOf({ roles, permissions }: Suggestion): string | undefined {
  const flags = Object.entries({ roles, permissions }).filter(([, grants]) => grants.length > 0);
  return flags.length > 0 ? flags.map(([flag, grants]) => `--${flag} ${grants.join(',')}`).join(' ') : undefined;
}

/** Explains the line on stdout to the user. */
async function explain(
  { apiKey: key, use: { uses } }: KeyState,
  { roles: granted, permissions, unused, tools, routes }: Suggestion,
  keys: Client,
): Promise<string[]> {
  const usage = `API key "${key.name}" was used ${uses} ${uses === 1 ? 'time' : 'times'}`;
  if (granted.length + permissions.length === 0)
    return [`${usage}, and needed none of its grants. There is nothing to suggest.`];
  const unusedPermissions = new Set(unused);
  const neverUsed = key.permissions.filter((permission) => unusedPermissions.has(permission));
  const catalog = key.roles.length > 0 ? await keys.permissions({}) : undefined;
  const roles = key.roles.map((role) => {
    const included = withoutIncluded([...new Set(catalog?.permissionsOf(role))]);
    const used = included.filter((permission) => !unusedPermissions.has(permission));
    return `Role ${role}: ${used.length} of ${included.length} permissions used.`;
  });
  return [
    permissions.length > 0 ? `${usage}, for ${formatList(permissions)}.` : `${usage}.`,
    ...(granted.length > 0
      ? [
          `It has given other keys the ${granted.length === 1 ? 'role' : 'roles'} ${formatList(granted)}, ` +
            `so it needs ${granted.length === 1 ? 'that role' : 'those roles'} itself.`,
        ]
      : []),
    ...roles,
    ...(neverUsed.length > 0 ? [`Never used: ${formatList(neverUsed)}.`] : []),
    ...(tools.length > 0 ? [`It has called the tools ${formatList(tools.map(({ name }) => name))}.`] : []),
    ...(routes.length > 0 ? [`These routes have let it pass: ${formatList(routes)}.`] : []),
  ];
}
