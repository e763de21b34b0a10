/** Makes this process report another platform while `work` runs. */
export async function onPlatform<Result>(platform: NodeJS.Platform, work: () => Result): Promise<Awaited<Result>> {
  const own = Object.getOwnPropertyDescriptor(process, 'platform')!;
  Object.defineProperty(process, 'platform', { ...own, value: platform });
  try {
    return await work();
  } finally {
    Object.defineProperty(process, 'platform', own);
  }
}
