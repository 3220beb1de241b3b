// Style sheets of pages and parts, each loaded once, when it is first needed.

const styles = new Map();

export function loadStyle(name) {
  if (!styles.has(name)) {
    styles.set(name, new Promise((resolve, reject) => {
      const link = document.createElement("link");
      link.rel = "stylesheet";
      link.href = new URL(`../../css/${name}`, import.meta.url);
      link.onload = resolve;
      link.onerror = () => reject(new Error(`${name} could not be loaded`));
      document.head.append(link);
    }));
  }
  return styles.get(name);
}
