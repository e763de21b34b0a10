/** What a caller says of its trace: the head of `traceparent` in any version of W3C Trace Context. */
export interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the caller may have recorded it. */
  readonly isSampled: boolean;
}

const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;
/** The length in version 00; later ones may have more behind a hyphen. */
const LENGTH = 55;

/** Reads `traceparent`; undefined for what is none, or for several. */
export function readTraceparent(header: string | undefined): Parent | undefined {
  if (header === undefined) return undefined;
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(header) ?? [];
  if (traceId === undefined || (version === '00' && header.length !== LENGTH)) return undefined;
  return { traceId, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & 1) === 1 };
}

/** A `traceparent` of version 00. */
export function formatTraceparent({ traceId, spanId, isSampled }: Parent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
