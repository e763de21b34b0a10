import { resolve } from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { changesNothing, contentsJson, contentsText, planJson, planLines } from '../../cli/backup-view.ts';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CliError, shownText } from '../../../../cli/errors.ts';
import { interruptible, type Stoppable } from '../../cli/interruptible.ts';
import { exclusiveFlags, noInputFlag, yesFlag } from '../../../../cli/input/key-flags.ts';
import { StoreCommand } from '../../../../cli/manage/key-command.ts';
import { type Progress, withProgress } from '../../../../cli/progress.ts';
import { BUSY_TIMEOUT_MS } from '../../../../cli/with-keys.ts';
import { differenceText } from '../../../../keys/repository/index.ts';
import { formatList } from '../../../../keys/basics/index.ts';
import type { ProposedRestore, Restored } from '../../restore-store.ts';

const UNCOMPARED =
  '--force skips the comparison with the present store. Every key of the backup will work as it did when the backup ' +
  'was made, also those that were deleted, disabled or rotated since. Keys that were created since are gone.';

export default class Restore extends StoreCommand {
  static override group = 'Store';
  static override isAtTop = true;
  static override summary = 'Restore a backup. What was revoked since then stays revoked.';
  static override description =
    'Checks the backup, compares it with the store, and then restores the keys as they are in the backup. ' +
    'Access that was revoked since stays revoked: deleted keys stay deleted, and keys that were disabled or ' +
    'rotated, or lost access, stay as they are, unless you name them in --restore-revoked. ' +
    'Keys that were created since are deleted. ' +
    'All these keys are listed, and you are asked first. ' +
    'The audit log and the usage of the store stay. ' +
    'A copy of the store is kept beside it. Servers can run meanwhile.';
  static override examples = examplesOf([
    ['See what a backup would change', 'keys-2026-01-31.sqlite --dry-run'],
    [
      'Bring back a deleted key, and undo all other changes since the backup',
      'keys-2026-01-31.sqlite --restore-revoked "CI deploy"',
    ],
    ['Restore into a new store, or in place of a lost one', 'keys-2026-01-31.sqlite --force --yes'],
  ]);
  static override args = { file: Args.string({ required: true, description: 'Path of the backup.' }) };
  static override flags = {
    'restore-revoked': Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: 'Restore this key, by its name or id, even if it was revoked since the backup. Can be repeated.',
      helpValue: '<name>',
    }),
    'restore-revoked-all': Flags.boolean({
      description: 'Restore all keys that were revoked since the backup.',
    }),
    force: Flags.boolean({
      description:
        'Skip the comparison with the current store: keys that were revoked since the backup work again. For a store ' +
        'that is new, lost or damaged.',
    }),
    'dry-run': Flags.boolean({ description: 'Show what would be done, and change nothing.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object> {
    const { args, flags } = await this.parse(Restore);
    if (!args.file.trim()) throw new CliError('USAGE', 'The path of the backup is empty. Pass one.');
    const isBlind = flags.force ?? false;
    const names = flags['restore-revoked'];
    if (isBlind && names) throw exclusiveFlags('--force', '--restore-revoked');
    if (isBlind && flags['restore-revoked-all']) throw exclusiveFlags('--force', '--restore-revoked-all');
    if (names && flags['restore-revoked-all']) throw exclusiveFlags('--restore-revoked', '--restore-revoked-all');
    this.requireStore(flags);
    const additions = await this.additions();
    const [{ restoreStore }, { keepingFeatures, allStores }, { listenersOf }] = await Promise.all([
      import('../../restore-store.ts'),
      import('../../../index.ts'),
      import('../../../../keys/changes/index.ts'),
    ]);
    const features = await allStores();
    const agree = (progress: Progress, stoppable: Stoppable) => async (proposed: ProposedRestore) => {
      progress.end();
      if (flags['dry-run']) return false;
      if (!this.jsonEnabled()) await this.terminal.note(shownText(linesOf(proposed).join('\n')));
      this.requireAnswer('restore, or --dry-run to see what that does');
      await stoppable.asking(() => this.confirm('Restore the backup?'));
      return true;
    };
    const restored = await interruptible('Nothing was restored.', (stoppable) =>
      withProgress(this.terminal, (progress) =>
        restoreStore({
          ...additions,
          backup: resolve(args.file),
          database: flags.database,
          env: this.environment,
          busyTimeoutMs: BUSY_TIMEOUT_MS,
          listeners: listenersOf(keepingFeatures()),
          features,
          bringBack: flags['restore-revoked-all'] ? 'all' : (names ?? []),
          isBlind,
          agree: agree(progress, stoppable),
          onVerified: stoppable.by(progress.of('Verifying', 'entries')),
          onCompared: stoppable.by(progress.of('Comparing', 'keys')),
          onCopied: stoppable.by(progress.of('Copying the store as it is', 'bytes')),
        }),
      ),
    );
    return this.show(restored, flags['dry-run'] ?? false);
  }

  private show(restored: Restored, isDryRun: boolean): Promise<object> {
    const { contents, differences, plan, store, previous } = restored;
    const json = {
      store,
      compared: plan !== undefined,
      dryRun: isDryRun,
      backup: contentsJson(contents),
      schemaDifferences: differences,
      ...planJson(plan),
      previous: previous ?? null,
    };
    const before = previous === undefined ? '' : `\nThe store as it was before is ${previous}`;
    const text = isDryRun
      ? linesOf(restored).join('\n')
      : `Restored a backup with ${contentsText(contents)} into ${store}.${before}`;
    if (!isDryRun) this.done = shownText(text);
    return this.print(json, shownText(text));
  }
}

function linesOf({ contents, differences, plan }: ProposedRestore): string[] {
  const head = [
    `The backup has ${contentsText(contents)}.`,
    ...(differences.length === 0
      ? []
      : [
          'Its schema is not as svc-api makes it: somebody has changed the backup, or the store before. Its rows ' +
            `alone are restored, and not what it has beside them: ${formatList(differences.map(differenceText))}.`,
        ]),
  ];
  if (!plan) return [...head, UNCOMPARED];
  return [...head, ...planLines(plan), ...(changesNothing(plan) ? ['No key would change.'] : [])];
}
