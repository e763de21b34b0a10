/** Loads the error codes of features, which come with their rules. */
export async function loadErrorCodes(): Promise<void> {
  const { allFeatures } = await import('../features/index.ts');
  allFeatures();
}
