/** Makes something for each object once, when it is first needed. */
export function madeOnce<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  const all = new WeakMap<Of, Made>();
  return (of) => {
    let made = all.get(of);
    if (made === undefined) all.set(of, (made = make(of)));
    return made;
  };
}
