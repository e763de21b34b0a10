import type { Created, KeyAdministration, Preview } from '../../keys/administration.ts';
import { warningsOf } from '../../keys/changes/confusable-names.ts';
import { assertValid, type Issue } from '../../keys/errors.ts';
import { validateChange, validateNewKey } from '../../keys/key/validation.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { formatList } from '../../keys/text.ts';
import { formatTime } from '../../keys/time.ts';
import { deliverSecrets } from '../interruptible.ts';
import type { KeyRequest } from '../prompts/new-key.ts';
import { type Terminal, warn } from '../terminal.ts';
import { formatCount } from '../views/table.ts';
import { timeAndDistance } from '../../keys/relative-time.ts';
import type { KeysPlace } from '../with-keys.ts';

/** A key whose secret nobody has must not exist: only an attacker could still find the secret. */
const REVERTED = 'The key was removed again, because nobody has its secret.';
const REPLACED = 'One that it has replaced stays deleted.';

export interface CreateCommandOptions {
  request: KeyRequest;
  place: KeysPlace;
  terminal: Terminal;
  /** Whether missing values may be asked for. */
  interactive: boolean;
  /** Whether confirmations are answered with yes. */
  assumesYes: boolean;
  /** Writes the secret out, and returns what it has written. When it throws, the creation is reverted. */
  show: (created: Created) => Promise<object>;
  /** If given, nothing is created, and this shows what the key would be. */
  preview?: (json: object, text: string) => Promise<object>;
}

/** Creates a key from flags, and asks for missing values where that is possible. @returns what was shown */
export async function runCreate({
  request,
  place,
  terminal,
  interactive,
  assumesYes,
  show,
  preview,
}: CreateCommandOptions): Promise<object> {
  const complete = request.name !== undefined && (request.roles ?? request.permissions) !== undefined;
  const prompting = interactive && !complete;
  const needsAll = prompting || preview !== undefined;
  const grants = needsAll ? undefined : (request.permissions ?? []);
  const catalog = await place.catalog(grants);
  const now = Date.now();
  assertValid(
    prompting
      ? validateChange(request, catalog, now)
      : [...missingName(request), ...validateNewKey(request, catalog, now)],
  );

  const keys = await place.open({ ifMissing: preview ? 'empty' : 'create', grants });
  try {
    const answered = prompting ? await ask(request, keys, assumesYes) : request;
    const input = { ...answered, name: answered.name ?? '' };
    if (preview) {
      const planned = await keys.preview(input);
      const shown = await showPreview(planned, preview);
      await warn(terminal, warningsOf(planned.confusable));
      return shown;
    }
    let shown: object = {};
    const reverted = input.overwrite && !keys.revertsAll ? `${REVERTED} ${REPLACED}` : REVERTED;
    const deliver = async (made: Created) => void (shown = await show(made));
    const created = await deliverSecrets({ deliver }, reverted, (delivery) => keys.create(input, delivery));
    await terminal.note(describe(created));
    await warn(terminal, warningsOf(created.confusable));
    return shown;
  } finally {
    await keys.close();
  }
}

async function ask(request: KeyRequest, keys: KeyAdministration, assumesYes: boolean): Promise<KeyRequest> {
  const { askForKey } = await import('../prompts/new-key.ts');
  return askForKey(request, await keys.catalog(), {
    exists: async (name) => (await keys.find(name)) !== undefined,
    doubt: async (name) => {
      const warnings = warningsOf(await keys.findConfusableNames(name));
      return warnings.length > 0 ? `${warnings.join(' ')} Create it anyway?` : undefined;
    },
    assumesYes,
  });
}

/** Shows what a key would be, and everything that it would be allowed to do. */
function showPreview(
  { name, roles, permissions, limits, allowFrom, expiresAt, effectivePermissions }: Preview,
  show: NonNullable<CreateCommandOptions['preview']>,
): Promise<object> {
  const fields = { name, roles, permissions, limits, allowFrom };
  const json = { ...fields, expiresAt: formatTime(expiresAt), effectivePermissions };
  return show(json, effectivePermissions.join('\n'));
}

function missingName({ name }: KeyRequest): Issue[] {
  if (name !== undefined) return [];
  const message =
    'The name is missing. Pass --name <name>; it can only be asked for on a terminal, without --json and --no-input.';
  return [{ code: 'USAGE', message }];
}

function describe({ apiKey: key, replaced }: Created): string {
  const grants = [
    key.roles.length > 0 ? `roles ${formatList(key.roles)}` : '',
    key.permissions.length > 0 ? `permissions ${formatList(key.permissions)}` : '',
  ];
  const held = [
    key.limits.length > 0 ? `, limited to ${formatList(key.limits)}` : '',
    key.allowFrom ? `, from ${formatList(key.allowFrom)} alone` : '',
  ].join('');
  const verb = replaced.length > 0 ? 'Replaced' : 'Created';
  const children = replaced.length - 1;
  const were = formatCount(children, 'key that it had created was', 'keys that it had created were');
  const lost = children > 0 ? ` ${were} deleted.` : '';
  const what = `${verb} API key "${key.name}" (${prefixOf(key.publicId)})`;
  const end = key.expiresAt === null ? 'does not expire' : `expires ${timeAndDistance(key.expiresAt, key.createdAt)}`;
  const may = `${grants.filter(Boolean).join(' and ')}${held}`;
  return `${what} with ${may}. It ${end}.${lost} Its secret is not shown again.`;
}
