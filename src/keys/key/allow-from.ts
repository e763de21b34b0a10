import { bitsBeyond, type Issue, parseNetwork, partsOf, readNetwork, type SplitNetwork } from '../basics/index.ts';

/** The most networks that a key can be limited to. */
export const MAX_NETWORKS = 100;

/**
 * Parses networks into their stored form: short, in lower case, and without the length of a single address. Duplicates
 * are dropped; malformed and ambiguous texts are issues.
 */
export function parseNetworks(texts: readonly string[]): { values: string[]; issues: Issue[] } {
  const values = new Set<string>();
  const issues: Issue[] = [];
  for (const text of texts) {
    const read = readNetwork(text.trim());
    if ('problem' in read) issues.push({ code: 'NETWORK_INVALID', message: read.problem });
    else values.add(read.network);
  }
  if (values.size > MAX_NETWORKS)
    issues.push({
      code: 'NETWORK_INVALID',
      message: `${values.size} networks are given; at most ${MAX_NETWORKS} are allowed.`,
    });
  return { values: [...values], issues };
}

/** The issues with the networks that a key is limited to. At least one is needed. */
export function validateNetworks(texts: readonly string[]): Issue[] {
  if (texts.length > 0) return parseNetworks(texts).issues;
  return [
    {
      code: 'NETWORK_INVALID',
      message: 'The list of networks is empty. Give at least one, or leave it out to allow all networks.',
    },
  ];
}

export function areWithin(inner: readonly string[], outer: readonly string[]): boolean {
  const others = outer.map(splitNetwork);
  return inner.map(splitNetwork).every((network) => others.some((other) => isWithin(network, other)));
}

function splitNetwork(text: string): SplitNetwork {
  const [address, prefix, family] = parseNetwork(text)!;
  return { parts: partsOf(address, family), prefix };
}

function isWithin({ parts, prefix }: SplitNetwork, other: SplitNetwork): boolean {
  return (
    other.parts.length === parts.length &&
    other.prefix <= prefix &&
    parts.every((part, index) => (part ^ other.parts[index]!) >> bitsBeyond(other, index) === 0)
  );
}
