export function unsupportedNode(): string | undefined;
export function refuseUnsupportedNode(): void;
