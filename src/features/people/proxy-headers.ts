import type { ClientAddresses } from '../../http/index.ts';
import type { SignInProxy } from './people.ts';
import { canIdentify } from '../../keys/key/index.ts';
import type { Person } from './identity.ts';
import { headerIssuer } from './refuse.ts';
import { SignInFailed } from './failure.ts';

/** An identified person with their groups. */
export interface Identified {
  readonly person: Person;
  readonly groups: readonly string[];
}

/** A request, with all values of its headers. */
interface RequestWithHeaders {
  peer(): string | undefined;
  all(name: string): readonly string[];
}

/** Maximum size of the header with groups, in bytes. */
const MAX_GROUPS_BYTES = 8192;
/** Separators of groups in headers that do not use a comma. */
const SEPARATORS: Readonly<Record<string, string>> = { 'x-authentik-groups': '|' };

/**
 * Reads the person that a proxy names; undefined if there is none, or if the proxy is not trusted.
 * @param proxy the headers, by names in lower case
 * @throws SignInFailed if a trusted proxy repeats the header, or its value is not a valid name
 */
export function readProxyHeaders(
  request: RequestWithHeaders,
  { header, groups }: SignInProxy,
  addresses: Pick<ClientAddresses, 'trusts'>,
): Identified | undefined {
  if (!addresses.trusts(request.peer())) return undefined;
  const subject = valueOf(request, header);
  if (subject === undefined) return undefined;
  if (!canIdentify(subject)) throw unusable(header, 'is empty, too long, or has control characters');
  const person = { issuer: headerIssuer(header), subject, name: subject };
  return { person, groups: groups === undefined ? [] : groupsIn(valueOf(request, groups) ?? '', groups) };
}

function groupsIn(text: string, header: string): string[] {
  if (Buffer.byteLength(text) > MAX_GROUPS_BYTES) throw unusable(header, `is longer than ${MAX_GROUPS_BYTES} bytes`);
  const names = text.split(SEPARATORS[header] ?? ',').map((group) => group.trim());
  return names.filter((group) => group !== '');
}

/** Node has headers in Latin-1, byte by byte. */
function valueOf(request: RequestWithHeaders, header: string): string | undefined {
  const values = request.all(header);
  if (values.length > 1) throw unusable(header, 'is repeated');
  const [value] = values;
  if (value === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, 'latin1')).trim();
  } catch {
    throw unusable(header, 'is not UTF-8');
  }
}

function unusable(header: string, problem: string): SignInFailed {
  return new SignInFailed(400, `The proxy does not identify you: its header ${header} ${problem}.`, problem);
}
