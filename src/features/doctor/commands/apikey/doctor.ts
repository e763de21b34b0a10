import { examplesOf } from '../../../../cli/base-command.ts';
import { withNamesOf } from '../../../../cli/output.ts';
import { shownText } from '../../../../cli/errors.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { withProgress } from '../../../../cli/progress.ts';
import type { Finding } from '../../inspection/finding.ts';

const FAILED = 1;

export default class Doctor extends StoreCommand {
  static override group = 'Store';
  static override isAtTop = true;
  static override summary = 'Check store, configuration and environment.';
  static override description =
    'Each check is ok, a warning, a failure, or was skipped since another one failed; what is wrong comes with what ' +
    'to do. Exits with 1 if there is a failure; warnings alone exit with 0. It also runs where there is no store, or ' +
    'where the store cannot be opened. Nothing is changed.';
  static override examples = examplesOf([
    ['Check what commands would use', ''],
    ['Check for a monitoring system', '--json'],
  ]);

  async run(): Promise<object> {
    const { flags } = await this.parse(Doctor);
    // A variable that says otherwise is one of the things to find.
    if (flags.server !== undefined) this.requireStore(flags);
    const [{ examine }, { inspectEnvironment, inspectNode }, { readCertificate }] = await Promise.all([
      import('../../examine.ts'),
      import('../../cli/doctor.ts'),
      import('../../../../http/certificate.ts'),
    ]);
    const environment = [inspectNode(), ...(await inspectEnvironment(this.environment, readCertificate))];
    const found = await withProgress(this.terminal, (progress) =>
      examine({
        database: flags.database,
        configFile: this.configFile,
        env: this.environment,
        ofHost: async () => (await import('../../../../cli/host.ts')).hostVocabulary(this.config),
        environment,
        onVerified: progress.of('Verifying', 'entries'),
      }),
    );
    const findings = found.map((finding) => ({
      ...finding,
      message: withNamesOf(this.config, finding.message),
      remedy: finding.remedy && withNamesOf(this.config, finding.remedy),
    }));
    const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
    const [failures, warnings] = [count('failure'), count('warning')];
    if (failures > 0) process.exitCode = FAILED;
    const { linesOf } = await import('../../cli/doctor.ts');
    return this.printLines({ failures, warnings, checks: findings }, shownText(linesOf(findings).join('\n')));
  }
}
