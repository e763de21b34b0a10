import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { exclusiveFlags, nameArgs, nameFlag } from '../../../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../../../cli/manage/key-command.ts';
import { openTable } from '../../../../cli/output.ts';
import { keyQuestions } from '../../operations.ts';
import type { UsedTool } from '../../suggest.ts';
import { TOOL_COLUMNS, toolJson, USAGE_COLUMNS, usageJson, usagePlot, usageRow } from '../../cli/usage-view.ts';
import type { KeyName } from '../../../../keys/service/index.ts';

export default class Usage extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'Show the requests of an API key by hour or day.';
  static override description =
    'Counts requests that were accepted, forbidden (the key lacks a permission, or cannot be used from that network), ' +
    'limited (over a limit), or refused (the key is disabled, has expired, or has another secret now). A terminal ' +
    'shows a plot. Otherwise, each hour or day with requests is a line, with tabs between START ACCEPTED FORBIDDEN ' +
    'LIMITED REFUSED. Times are in UTC. svc-api keeps hours for 90 days, and days for two years. A request appears ' +
    'a few seconds after it was made.';
  static override examples = examplesOf([
    ['See the last 24 hours', '"CI deploy"'],
    ['See the last 90 days', '"CI deploy" --by day --since 90d'],
    ['The hours of a week as JSON', '"CI deploy" --since 7d --json'],
    ['See which tools of MCP servers a key has called', '"CI deploy" --by tool'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    by: Flags.string({
      description:
        'Group requests by hour or day, or list the MCP tools that the key has called (tool). Default: hour.',
      helpValue: 'hour|day|tool',
    }),
    since: Flags.string({
      description:
        'First hour or day: a date (from 00:00 UTC), an RFC 3339 date and time, or how long ' +
        'ago. Default: 24 hours or 30 days.',
      helpValue: '<date>|7d',
    }),
    until: Flags.string({
      description: 'Last hour or day: a date, an RFC 3339 date and time, or how long ago. Default: now.',
      helpValue: '<date>|7d',
    }),
  };

  async run(): Promise<object> {
    const input = await this.parse(Usage);
    const { by, since, until } = input.flags;
    return this.withKeys(input.flags, async (keys) => {
      const { apiKey: key } = await this.findKey(keys, nameOf(input));
      if (by?.trim().toUpperCase() === 'TOOL') {
        if (since !== undefined || until !== undefined) throw exclusiveFlags('--by tool', '--since', '--until');
        return this.showTools(key, (await keys.of(keyQuestions).keySuggestion({ id: key.id })).tools);
      }
      const usage = await keys.of(keyQuestions).keyUsage({ id: key.id, request: { by, from: since, to: until } });
      const { terminal } = this;
      const text = async () =>
        terminal.isTerminal
          ? usagePlot(usage, terminal)
          : (await openTable(USAGE_COLUMNS, terminal))(usage.periods.map(usageRow));
      const isEmpty = usage.periods.length === 0;
      const shown = await this.print(usageJson(key, usage), isEmpty ? undefined : await text());
      if (isEmpty && !this.jsonEnabled()) {
        const [from, to] = [usage.from, usage.to].map((time) => new Date(time).toISOString());
        await terminal.note(
          `API key "${key.name}" made no requests from ${from} to ${to}. New requests appear after a few seconds.`,
        );
      }
      return shown;
    });
  }

  /** Shows which tools of MCP servers a key has called, and when it did so last. */
  private async showTools({ id, name }: KeyName, used: readonly UsedTool[]): Promise<object> {
    const tools = used.map(toolJson);
    const rows = tools.map((tool) => [tool.name, tool.lastUsedAt]);
    const text = rows.length > 0 ? (await openTable(TOOL_COLUMNS, this.terminal))(rows) : undefined;
    const shown = await this.print({ id, name, by: 'TOOL', tools }, text);
    if (rows.length === 0 && !this.jsonEnabled()) await this.terminal.note('It has called no tools of MCP servers.');
    return shown;
  }
}
