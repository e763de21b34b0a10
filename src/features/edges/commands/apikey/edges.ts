import { examplesOf } from '../../../../cli/base-command.ts';
import { KeyCommand } from '../../../../cli/manage/key-command.ts';
import { type Column, openTable } from '../../../../cli/output.ts';
import { formatTime, relativeTime } from '../../../../keys/basics/index.ts';
import { edgeOperations } from '../../operations.ts';

const COLUMNS: readonly Column[] = [
  { title: 'NAME', least: 10 },
  { title: 'KEY', least: 10 },
  { title: 'ADDRESS', least: 8, leaves: 2 },
  { title: 'STATE' },
  { title: 'LAG' },
  { title: 'ASKED', leaves: 1 },
];

export default class Edges extends KeyCommand {
  static override group = 'Servers';
  static override isAtTop = true;
  static override summary = 'List the edges that follow this server.';
  static override description =
    'Lists edges that asked for changes within ten minutes, at any server of the store. The state is answering, resting ' +
    'or behind. An edge rests after 10 seconds without a request for a key, and gets a lease before it answers again. ' +
    'An edge that is behind refuses all keys. The lag is the time since it last had all changes. The data can be two ' +
    'seconds old. Without a terminal, each edge is a line with tabs between NAME KEY ADDRESS STATE LAG ASKED. With ' +
    '--server, requires EDGE:READ_ANY.';
  static override examples = examplesOf([
    ['List the edges', ''],
    ['List the edges as JSON', '--json'],
  ]);

  async run(): Promise<object> {
    const { flags } = await this.parse(Edges);
    return this.withKeys(flags, async (keys) => {
      const edges = await keys.of(edgeOperations).edges({});
      const { isTerminal } = this.terminal;
      const table = await openTable(COLUMNS, this.terminal);
      const rows = edges.map(({ name, key, address, leaseMs, isResting, lagMs, lastAskedAt }) => [
        name,
        key.name,
        address ?? '-',
        isResting ? 'resting' : leaseMs > 0 ? 'answering' : 'behind',
        `${(lagMs / 1000).toFixed(1)}s`,
        isTerminal ? relativeTime(lastAskedAt) : formatTime(lastAskedAt),
      ]);
      const json = edges.map(({ id, name, key, address, leaseMs, isResting, lagMs, lastAskedAt }) => ({
        id,
        name,
        apiKey: key,
        address: address ?? null,
        leaseMs,
        isResting,
        lagMs,
        lastAskedAt: formatTime(lastAskedAt),
      }));
      const shown = await this.print({ edges: json }, rows.length > 0 ? table(rows) : undefined);
      if (rows.length === 0 && !this.jsonEnabled()) await this.terminal.note('No edges.');
      return shown;
    });
  }
}
