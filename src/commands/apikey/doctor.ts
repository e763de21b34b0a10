import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { withNamesOf } from '../../cli/output.ts';
import { CHANGES_MADE, CliError, shownText } from '../../cli/errors.ts';
import { noInputFlag, yesFlag } from '../../cli/input/key-flags.ts';
import { StoreCommand } from '../../cli/manage/key-command.ts';
import { withProgress } from '../../cli/terminal.ts';
import { BUSY_TIMEOUT_MS } from '../../cli/with-keys.ts';
import type { Finding } from '../../store/index.ts';
import type { ClockRepair } from '../../store/repair-clock.ts';

const FAILED = 1;

export default class Doctor extends StoreCommand {
  static override summary = 'Check store, configuration and environment.';
  static override description =
    'Each check is ok, a warning, a failure, or was skipped since another one failed; what is wrong comes with what ' +
    'to do. Exits with 1 if there is a failure; warnings alone exit with 0. It also runs where there is no store, or ' +
    'where the store cannot be opened. Without --repair, nothing is changed.\n\n' +
    'With --repair clock, after the clock of the machine (for PostgreSQL, of the database server) was wrong and is ' +
    'right again: what was written while it was ahead is listed, and moved back as if the last of it had been ' +
    'written now: when keys were created and expire, and all that was counted. The audit log keeps its times, and ' +
    'notes the repair.';
  static override examples = examplesOf([
    ['Check what commands would use', ''],
    ['Check for a monitoring system', '--json'],
    ['See what was written while the clock was ahead', '--repair clock --dry-run'],
  ]);
  static override flags = {
    repair: Flags.option({
      options: ['clock'] as const,
      helpValue: 'clock',
      description: 'Move back the times that were written while the clock was ahead.',
    })(),
    'dry-run': Flags.boolean({ description: 'With --repair: show what would be done, and change nothing.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Doctor);
    // A variable that says otherwise is one of the things to find.
    if (flags.server !== undefined) this.requireStore(flags);
    if (flags.repair) return this.repair(flags);
    for (const flag of ['dry-run', 'yes'] as const)
      if (flags[flag]) throw new CliError('USAGE', `--${flag} belongs to --repair. Leave it out.`);
    const [{ examine }, { inspectEnvironment, inspectNode }, { readCertificate }] = await Promise.all([
      import('../../service/examine.ts'),
      import('../../cli/doctor.ts'),
      import('../../http/certificate.ts'),
    ]);
    const environment = [inspectNode(), ...(await inspectEnvironment(this.environment, readCertificate))];
    const found = await withProgress(this.terminal, (progress) =>
      examine({
        database: flags.database,
        configFile: this.configFile,
        env: this.environment,
        resources: async () => (await import('../../cli/host.ts')).hostResources(this.config),
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

  private async repair(flags: { database?: string | undefined; 'dry-run'?: boolean | undefined }): Promise<object> {
    this.requireStore(flags);
    const [{ repairClock }, { repairJson, repairLines }] = await Promise.all([
      import('../../store/repair-clock.ts'),
      import('../../cli/doctor.ts'),
    ]);
    const agree = async (repair: ClockRepair): Promise<boolean> => {
      if (flags['dry-run']) return false;
      this.requireAnswer('repair, or --dry-run to see what that does');
      const question = 'Is this the right time, and is this to be repaired?';
      await this.confirm(question, shownText(repairLines(repair).join('\n')));
      return true;
    };
    const { repair, isRepaired } = await repairClock({
      database: flags.database,
      env: this.environment,
      busyTimeoutMs: BUSY_TIMEOUT_MS,
      agree,
    });
    if (isRepaired) this.done = CHANGES_MADE;
    const text = [...repairLines(repair), ...(isRepaired ? ['Repaired.'] : [])].join('\n');
    return this.printLines(
      { ...repairJson(repair), dryRun: flags['dry-run'] ?? false, repaired: isRepaired },
      shownText(text),
    );
  }
}
