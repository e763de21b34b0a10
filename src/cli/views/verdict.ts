import type { Catalog, Permission } from '../../keys/permissions/catalog.ts';
import { chainAccess, chainExpiry } from '../../keys/authorization/chain.ts';
import { splitPermission } from '../../keys/permissions/permission-set.ts';
import type { Identification } from '../../keys/authentication/identify.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { formatTime } from '../../keys/time.ts';

type Known = Extract<Identification, { apiKey: unknown }>;
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
  const text = `API key "${found.apiKey.name}" (${prefixOf(found.publicId)}), ${statusText(found)}`;
  if (found.status !== 'ACTIVE') return { ...refused, reason: REASONS[found.status], text: `not valid: ${text}` };
  if (permission === undefined) return { valid: true, reason: null, permitted: null, text: `valid: ${text}` };
  const permitted = chainAccess(found.chain, catalog).has(...splitPermission(permission));
  const access = `${permitted ? 'has' : 'lacks'} ${permission}`;
  return { valid: true, reason: permitted ? null : 'forbidden', permitted, text: `valid: ${text}, ${access}` };
}

function unknownText({ unknown, publicId }: Unknown): string {
  if (unknown === 'malformed') return 'malformed, with a wrong format or checksum';
  return `unknown, no API key has this secret${publicId === undefined ? '' : ` (${prefixOf(publicId)})`}`;
}

function statusText({ apiKey: key, chain, status, publicId }: Known): string {
  const end = chainExpiry(chain);
  if (status === 'ROTATED') return 'ROTATED, replaced by a newer secret';
  if (status === 'EXPIRED')
    return `EXPIRED since ${formatTime(end)}${end === key.expiresAt ? '' : ', as a key above it'}`;
  if (status === 'DISABLED' && key.damaged) return 'DISABLED, because its row in the key store is damaged';
  if (status === 'DISABLED')
    return key.disabledAt === null
      ? 'DISABLED, because a key above it is'
      : `DISABLED since ${formatTime(key.disabledAt)}`;
  const active = `ACTIVE, ${end === null ? 'does not expire' : `expires ${formatTime(end)}`}`;
  if (publicId === key.publicId) return active;
  const graceEnd =
    formatTime(key.rotation?.previousEndsAt ?? null) ?? 'the new one is used and the grace period is over';
  return `${active}; this is its previous secret, accepted until ${graceEnd}`;
}
