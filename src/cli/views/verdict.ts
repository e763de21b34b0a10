import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { grantsBehind } from '../../keys/authorization/explain.ts';
import type { Identification } from '../../keys/authentication/identify.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { formatTime } from '../../keys/time.ts';

type Known = Extract<Identification, { key: unknown }>;
type Unknown = Exclude<Identification, Known>;

export interface Verdict {
  valid: boolean;
  reason: 'malformed' | 'unknown' | 'disabled' | 'expired' | 'rotated' | 'forbidden' | null;
  /** Whether the key has the permission asked for; null if none was. */
  permitted: boolean | null;
  text: string;
}

const REASONS = { DISABLED: 'disabled', EXPIRED: 'expired', ROTATED: 'rotated' } as const;

/** The verdict on a secret, and on a permission if one is asked for. */
export function verdictOn(found: Identification, permission: Permission | undefined, catalog: Catalog): Verdict {
  const refused = { valid: false, permitted: permission === undefined ? null : false };
  if ('unknown' in found) return { ...refused, reason: found.unknown, text: `not valid: ${unknownText(found)}` };
  const text = `API key "${found.key.name}" (${prefixOf(found.publicId)}), ${statusText(found)}`;
  if (found.status !== 'ACTIVE') return { ...refused, reason: REASONS[found.status], text: `not valid: ${text}` };
  if (permission === undefined) return { valid: true, reason: null, permitted: null, text: `valid: ${text}` };
  const permitted = grantsBehind(found.key, permission, catalog).length > 0;
  const access = `${permitted ? 'has' : 'lacks'} ${permission}`;
  return { valid: true, reason: permitted ? null : 'forbidden', permitted, text: `valid: ${text}, ${access}` };
}

function unknownText({ unknown, publicId }: Unknown): string {
  if (unknown === 'malformed') return 'malformed, with a wrong format or checksum';
  return `unknown, no API key has this secret${publicId === undefined ? '' : ` (${prefixOf(publicId)})`}`;
}

function statusText({ key, status, publicId }: Known): string {
  if (status === 'ROTATED') return 'ROTATED, replaced by a newer secret';
  if (status === 'DISABLED') return `DISABLED since ${formatTime(key.disabledAt)}`;
  if (status === 'EXPIRED') return `EXPIRED since ${formatTime(key.expiresAt)}`;
  const active = `ACTIVE, ${key.expiresAt === null ? 'does not expire' : `expires ${formatTime(key.expiresAt)}`}`;
  if (publicId === key.publicId) return active;
  const end = formatTime(key.rotation?.previousEndsAt ?? null) ?? 'the new one is used and the grace period is over';
  return `${active}; this is its previous secret, accepted until ${end}`;
}
