let questions = 0;

/** Does work that asks the user, who can close the input: a prompt then ends the command itself. */
export async function whileAsking<Result>(work: () => Promise<Result>): Promise<Result> {
  questions += 1;
  try {
    return await work();
  } finally {
    questions -= 1;
  }
}

/**
 * Calls a function if Node has nothing left to do, unless a question is open.
 * @returns a function that ends this
 */
export function onIdle(fail: () => void): () => void {
  const listener = () => {
    if (questions === 0) fail();
  };
  process.once('beforeExit', listener);
  return () => process.off('beforeExit', listener);
}
