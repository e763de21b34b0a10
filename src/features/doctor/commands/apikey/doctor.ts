import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { withNamesOf } from '../../../../cli/output.ts';
import { shownText } from '../../../../cli/errors.ts';
import { exclusiveFlags } from '../../../../cli/input/key-flags.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { withProgress } from '../../../../cli/progress.ts';
import type { Fixes } from '../../cli/fix.ts';
import type { Finding } from '../../inspection/finding.ts';

const FAILED = 1;

export default class Doctor extends StoreCommand {
  static override group = 'Store';
  static override isAtTop = true;
  static override summary = 'Find and repair problems of store, configuration and environment.';
  static override description =
    'Each check is ok, a warning, a failure, or skipped because another check failed. Each problem comes with what ' +
    'to do about it. Exits with 1 if there is a failure, and with 0 if there are only warnings. Works even if the ' +
    'store is missing or cannot be opened. Also lists the edges that asked for changes in the last ten minutes. An ' +
    'edge rests after 10 seconds without a request; one that is behind refuses all keys. Without --fix, nothing is ' +
    'changed.';
  static override examples = examplesOf([
    ['Check everything', ''],
    ['Check for a monitoring system', '--json'],
    ['Make the file of the store smaller, and correct its file modes', '--fix'],
    ['Save the JSON Schema of svc-api.yaml for your editor', '--config-schema > svc-api.schema.json'],
  ]);
  static override flags = {
    fix: Flags.boolean({
      description:
        'Return the space that deleted keys and pruned log entries have left to the disk, and stop other users from ' +
        'reading the files of the store. Servers can run meanwhile.',
    }),
    'config-schema': Flags.boolean({
      description:
        'Print the JSON Schema of svc-api.yaml, with the sections of installed plugins, for editors. Checks nothing.',
    }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Doctor);
    // A contradictory variable is one of the findings.
    if (flags.server !== undefined) this.requireStore(flags);
    if (flags['config-schema']) {
      if (flags.fix) throw exclusiveFlags('--config-schema', '--fix');
      const { configSchema } = await import('../../../../config/json-schema.ts');
      const schema = await configSchema();
      return this.print(schema, JSON.stringify(schema, null, 2));
    }
    const [{ examine }, { inspectEnvironment, inspectNode }, { readCertificate }] = await Promise.all([
      import('../../examine.ts'),
      import('../../cli/doctor.ts'),
      import('../../../../http/certificate.ts'),
    ]);
    const environment = [inspectNode(), ...inspectEnvironment(this.environment, readCertificate)];
    const look = () =>
      withProgress(this.terminal, (progress) =>
        examine({
          database: flags.database,
          configFile: this.configFile,
          env: this.environment,
          ofHost: async () => (await import('../../../../cli/host.ts')).hostVocabulary(this.config),
          environment,
          onVerified: progress.of('Verifying', 'entries'),
        }),
      );
    let found = await look();
    let fixes: Fixes | undefined;
    if (flags.fix) {
      const { fix } = await import('../../cli/fix.ts');
      fixes = await fix(found, flags.database);
      if (fixes.fixed.length > 0) this.done = fixes.fixed.join(' ');
      found = [...(await look()), ...fixes.failed];
    }
    const findings = found.map((finding) => ({
      ...finding,
      message: withNamesOf(this.config, finding.message),
      remedy: finding.remedy && withNamesOf(this.config, finding.remedy),
    }));
    const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
    const [failures, warnings] = [count('failure'), count('warning')];
    if (failures > 0) process.exitCode = FAILED;
    const { linesOf } = await import('../../cli/doctor.ts');
    const checks = findings.map(({ check, status, message, remedy, items }) => ({
      check,
      status,
      message,
      remedy,
      ...(items && { items: items.map(({ json }) => json) }),
    }));
    const { fixed = [], freedBytes } = fixes ?? {};
    return this.printLines(
      { failures, warnings, checks, ...(fixes && { fixed, freedBytes }) },
      shownText([...linesOf(findings), ...fixed].join('\n')),
    );
  }
}
