import { examplesOf } from '../../cli/base-command.ts';
import { KeyCommand, nameOf, searchIn } from '../../cli/manage/key-command.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { fieldText, issuedJson, issuedLines, keyJson, limitJson, limitText } from '../../cli/views/key-view.ts';
import { printable, timeAndDistance } from '../../keys/basics/index.ts';
import { fieldsOf, MAX_TEXT_LENGTH } from '../../keys/key/index.ts';
import type { Client } from '../../keys/operations/index.ts';
import type { KeyWithAccess } from '../../keys/service/index.ts';
import { ALL_ACCESS, withoutIncluded } from '../../keys/permissions/index.ts';

export default class Show extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Show an API key, with all its permissions.';
  static override description =
    'Includes the parent keys that limit it, and its effects on other keys. The secret is never shown.';
  static override examples = examplesOf([
    ['Show a key', '--name "CI deploy"'],
    ['Show a key as JSON', '--name "CI deploy" --json'],
  ]);
  static override args = nameArgs;
  static override flags = { name: nameFlag };

  async run(): Promise<object> {
    const input = await this.parse(Show);
    return this.withKeys(input.flags, async (keys) => {
      const key = await this.found(nameOf(input), (name) => keys.show(name), searchIn(keys));
      const json = { ...keyJson(key), effectivePermissions: key.effectivePermissions };
      const limitedBy = key.limitedBy.map(limitJson);
      const width = Math.max(...Object.keys(json).map((field) => field.length)) + 2;
      const lines = Object.entries({ ...json, effectivePermissions: await this.effective(key, keys) }).map(
        ([field, value]) => field.padEnd(width) + this.textOf(field, value, width),
      );
      lines.push(...limitedBy.map((limit) => 'limitedBy'.padEnd(width) + limitText(limit)));
      lines.push(...issuedLines(key.issued).map((line) => 'issued'.padEnd(width) + line));
      const more = { ...(limitedBy.length > 0 && { limitedBy }), ...issuedJson(key.issued) };
      return this.printLines({ ...json, ...more }, lines.join('\n'));
    });
  }

  /** The permissions as text, without those that others include; one sentence if they are all there are. */
  private async effective({ apiKey: { roles }, effectivePermissions }: KeyWithAccess, keys: Client) {
    const shown = withoutIncluded(effectivePermissions);
    if (!roles.includes(ALL_ACCESS)) return shown;
    const all = withoutIncluded((await keys.permissions({})).permissionsOf(ALL_ACCESS));
    return shown.length === all.length ? 'Every action on every resource' : shown;
  }

  /**
   * The value of a field; on a terminal, times include their distance from now.
   * @param indent of further lines of a text
   */
  private textOf(field: string, value: Parameters<typeof fieldText>[1], indent: number): string {
    if (typeof value === 'string' && fieldsOf().some(([name, { hasLines }]) => name === field && hasLines)) {
      const lines = value.replaceAll('\t', '  ').split('\n');
      return lines.map((line) => printable(line, MAX_TEXT_LENGTH)).join(`\n${' '.repeat(indent)}`);
    }
    const isTime = field.endsWith('At') && typeof value === 'string';
    return isTime && this.terminal.isTerminal ? timeAndDistance(Date.parse(value)) : fieldText(field, value);
  }
}
