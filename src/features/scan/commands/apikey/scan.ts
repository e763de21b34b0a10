import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { CliError } from '../../../../cli/errors.ts';
import { exclusiveFlags } from '../../../../cli/input/key-flags.ts';
import { formatCount } from '../../../../cli/output.ts';
import { withKeys } from '../../../../cli/with-keys.ts';
import { withProgress } from '../../../../cli/progress.ts';
import { type Finding, FoundKeys, scan, type ScanOptions } from '../../cli/scan.ts';
import type { ApiKey } from '../../../../keys/key/index.ts';
import { DEFAULT_PREFIX, prefixOf } from '../../../../keys/secret/index.ts';

const UNREADABLE = 1;
const LIVE = 3;

export default class Scan extends StoreCommand {
  static override group = 'Leaks';
  static override summary = 'Find API keys in files, and show which of them are live.';
  static override description =
    'Keys are found by their format and checksum, and then looked up in the key store. ' +
    'Folders are searched recursively, except for .git folders; links in them are not followed. ' +
    'Prints a line for each key found: its place, prefix, status and name, never the whole secret. ' +
    'Exits with 3 if a live key was found, otherwise with 1 if something could not be read.';
  static override examples = examplesOf([
    [
      'Before a commit, scan what will be committed',
      'git diff --cached --text | <%= config.bin %> <%= command.id %> -',
    ],
    [
      'Look up what gitleaks has found in the history of a repository',
      'gitleaks git --report-format json --report-path - . | <%= config.bin %> <%= command.id %> --report -',
    ],
    ['Let gitleaks find keys', '--rules gitleaks > gitleaks.toml'],
    ['Disable the live keys that have leaked into logs', '--revoke ./logs'],
  ]);
  static override args = {
    path: Args.string({ description: 'Files and folders; - for stdin.', multiple: true }),
  };
  static override flags = {
    report: Flags.string({
      description: 'Look up the findings of this report of gitleaks or TruffleHog, in JSON; - for stdin.',
      helpValue: '<file>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    rules: Flags.option({
      description: 'Print a rule for another scanner to find keys, instead of scanning.',
      options: ['gitleaks', 'trufflehog', 'pre-commit'] as const,
      helpValue: 'gitleaks|trufflehog|pre-commit',
    })(),
    revoke: Flags.boolean({ description: 'Disable the live keys that are found.' }),
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Scan);
    const [paths, reports] = [args.path ?? [], flags.report ?? []];
    if (flags.rules !== undefined) {
      if (paths.length + reports.length > 0 || flags.revoke) throw exclusiveFlags('--rules', 'what to scan');
      const [{ scannerRules }, { prefix }] = await Promise.all([
        import('../../cli/scanner-rules.ts'),
        this.additions(),
      ]);
      const text = scannerRules(prefix ?? DEFAULT_PREFIX)[flags.rules];
      return this.print({ scanner: flags.rules, rules: text }, text.trimEnd());
    }
    if (paths.length + reports.length === 0)
      throw new CliError('USAGE', 'Name what to scan: files, folders, - for stdin, or a report with --report.');
    if ([...paths, ...reports].filter((path) => path === '-').length > 1)
      throw new CliError('USAGE', 'stdin can be read only once. Name - once.');
    // Without a store every key would be UNKNOWN, which looks like an answer.
    this.requireStore(flags);
    return withKeys({ database: flags.database, ifMissing: 'fail' }, (keys) =>
      this.scan(new FoundKeys(keys, flags.revoke ? (key) => this.noteRevoked(key) : undefined), paths, reports),
    );
  }

  private async scan(keys: FoundKeys, paths: readonly string[], reports: readonly string[]): Promise<object> {
    const all: Finding[] = [];
    let [found, unreadable] = [0, 0];
    let noted = Promise.resolve();
    const options: ScanOptions = {
      paths,
      reports,
      identify: (secret, place) => keys.identify(secret, place),
      onFound: async (findings) => {
        found += findings.length;
        if (this.jsonEnabled()) all.push(...findings);
        else {
          await noted;
          await this.terminal.out(findings.map((finding) => `${lineOf(finding)}\n`).join(''));
        }
      },
      onUnreadable: (text) => {
        unreadable += 1;
        noted = noted.then(() => this.terminal.note(text));
      },
    };
    // Progress would mix with the user's input.
    const isTyped = [...paths, ...reports].includes('-') && this.terminal.isInputTerminal;
    const files = await withProgress(this.terminal, (progress) =>
      scan({ ...options, ...(!isTyped && { onProgress: progress.of('Scanning', 'bytes') }) }),
    );
    await noted;
    const { live, revoked, unnoted } = keys;
    if (unnoted) await this.terminal.note(`The findings could not be recorded in the audit log: ${unnoted.message}`);
    if (live > 0) process.exitCode = LIVE;
    else if (unreadable > 0) process.exitCode = UNREADABLE;
    const shown = await this.print({ files, found: all, live, revoked, unreadable }, undefined);
    if (!this.jsonEnabled()) await this.terminal.note(summaryOf({ files, found, live, revoked }));
    return shown;
  }

  private noteRevoked({ name, publicId }: ApiKey): Promise<void> {
    return this.terminal.note(`API key "${name}" (${prefixOf(publicId)}) is disabled`);
  }
}

function lineOf({ path, line, column, prefix, status, name }: Finding): string {
  return [`${path}:${line}:${column}`, prefix, status, ...(name === null ? [] : [`"${name}"`])].join('  ');
}

function summaryOf({ files, found, live, revoked }: Record<'files' | 'found' | 'live' | 'revoked', number>): string {
  const counts = [
    `${formatCount(files, 'file', 'files')} read`,
    `${formatCount(found, 'secret', 'secrets')} found`,
    formatCount(live, 'live key', 'live keys'),
  ];
  return `${[...counts, ...(revoked > 0 ? [`${revoked} disabled`] : [])].join(', ')}.`;
}
