import { examplesOf } from '../../../../../cli/base-command.ts';
import { CONSENT_COLUMNS, ConsentCommand, consentJson, consentRow } from '../../../cli/consent-command.ts';
import { consentOperations } from '../../../operations.ts';
import { limitFlag, readLimit } from '../../../../../cli/input/key-flags.ts';
import { openTable } from '../../../../../cli/output.ts';
import { DEFAULT_PAGE_SIZE } from '../../../../../keys/basics/index.ts';

export default class List extends ConsentCommand {
  static override group = 'Applications';
  static override isAtTop = true;
  static override topic = 'List, approve or deny requests of applications for API keys.';
  static override summary = "List applications' open requests for API keys, oldest first.";
  static override description =
    'Applications send requests to a running server. Requests expire after ten minutes. Without a terminal, each request ' +
    'is a line with tabs between ID APPLICATION STATUS FOR FROM EXPIRES. You approve by code, which only the application ' +
    'shows.';
  static override examples = examplesOf([
    ['List the open requests', ''],
    ['List the open requests as JSON', '--json'],
  ]);
  static override flags = { limit: limitFlag('requests') };

  async run(): Promise<object> {
    const { flags } = await this.parse(List);
    const limit = readLimit(flags.limit, 'requests') ?? DEFAULT_PAGE_SIZE;
    return this.withKeys(flags, async (keys) => {
      const requests = await keys.of(consentOperations).consentRequests({ first: limit });
      const { isTerminal } = this.terminal;
      const table = await openTable(CONSENT_COLUMNS, this.terminal);
      const rows = requests.map((request) => consentRow(request, isTerminal));
      const shown = await this.print(
        { requests: requests.map(consentJson) },
        rows.length > 0 ? table(rows) : undefined,
      );
      if (rows.length === 0 && !this.jsonEnabled()) await this.terminal.note(await this.whyNone(flags));
      return shown;
    });
  }

  private async whyNone(flags: { server?: string | undefined }): Promise<string> {
    const isElsewhere = flags.server !== undefined || Boolean(this.environment['SVC_API_SERVER']);
    const { consent } = isElsewhere ? {} : await this.additions();
    return `No requests to approve${consent === 'off' ? ': "consent" in svc-api.yaml is off' : ''}.`;
  }
}
