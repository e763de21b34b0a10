import { examplesOf } from '../../../../cli/base-command.ts';
import { CONSENT_COLUMNS, ConsentCommand, consentJson, consentRow } from '../../cli/consent-command.ts';
import { consentOperations } from '../../operations.ts';
import { limitFlag, readLimit } from '../../../../cli/input/key-flags.ts';
import { openTable } from '../../../../cli/output.ts';
import { DEFAULT_PAGE_SIZE } from '../../../../keys/basics/index.ts';

export default class Requests extends ConsentCommand {
  static override group = 'Applications';
  static override summary = 'List the applications that ask for an API key, oldest first.';
  static override description =
    'Applications ask a running server, and wait ten minutes at most. Where this is not a terminal, a request is one ' +
    'line, with tabs between ID APPLICATION STATUS FOR FROM ENDS. The codes by which you can agree are known to the ' +
    'applications alone, which show them.';
  static override examples = examplesOf([
    ['See who asks for what', ''],
    ['See who asks for what, as JSON', '--json'],
  ]);
  static override flags = { limit: limitFlag('requests') };

  async run(): Promise<object> {
    const { flags } = await this.parse(Requests);
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
    return `No application asks for a key${consent === 'off' ? ': "consent" in svc-api.yaml is off' : ''}.`;
  }
}
